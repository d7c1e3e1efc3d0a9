import type { Deployment } from '../client';
import { number, percent } from './format';
import { engineName, speculationName } from './names';

/** One property of a deployment; undefined where it is not known. */
interface Setting {
  name: string;
  value?: string;
}

/** Returns all properties of a deployment, in the order of display: the server, its stack, the engine's settings. */
export function settingsOf(deployment: Deployment): Setting[] {
  const { speculation, free_gpu_memory_fraction: memory } = deployment;
  return [
    { name: 'Engine', value: engineName(deployment.engine) },
    { name: 'Model', value: deployment.model },
    { name: 'GPU', value: deployment.gpu },
    { name: 'Workers', value: count(deployment.workers) },
    { name: 'Tensor parallelism', value: count(deployment.tensor_parallel) },
    { name: 'Serving', value: deployment.serving },
    {
      name: 'Speculation',
      value: speculation && speculation !== 'not_recorded' ? speculationName(speculation) : undefined,
    },
    { name: 'NVIDIA Dynamo', value: deployment.dynamo },
    { name: 'Kubernetes', value: deployment.kubernetes },
    { name: 'Worker image', value: deployment.worker_image },
    { name: 'Max batch size', value: count(deployment.max_batch_size, 'sequences') },
    { name: 'Max num tokens', value: count(deployment.max_num_tokens, 'tokens') },
    { name: 'Chunked prefill', value: onOff(deployment.chunked_prefill) },
    { name: 'Overlap scheduler', value: onOff(deployment.overlap_scheduler) },
    { name: 'KV cache dtype', value: deployment.kv_cache_dtype?.toUpperCase() },
    { name: 'KV cache block size', value: count(deployment.block_size, 'tokens') },
    { name: 'Free GPU memory for the KV cache', value: memory === undefined ? undefined : percent(memory) },
    { name: 'Price of a GPU-hour', value: deployment.gpu_hour === undefined ? undefined : `${deployment.gpu_hour} $` },
  ];
}

function count(value: number | undefined, unit = ''): string | undefined {
  return value === undefined ? undefined : `${number(value)} ${unit}`.trim();
}

function onOff(value: boolean | undefined): string | undefined {
  return value === undefined ? undefined : value ? 'on' : 'off';
}
