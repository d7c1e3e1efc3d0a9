import type { Vendor } from '../../../vendor';
import type { Reference } from './types';

/** Public sources to read on, by the id that answers name them by. */
export const sources = {
  architecture: {
    title: 'NVIDIA Dynamo: overall architecture',
    url: 'https://docs.nvidia.com/dynamo/latest/design-docs/overall-architecture',
  },
  flow: {
    title: 'NVIDIA Dynamo: request path',
    url: 'https://docs.nvidia.com/dynamo/latest/design-docs/architecture-flow',
  },
  router: {
    title: 'NVIDIA Dynamo: router design',
    url: 'https://docs.nvidia.com/dynamo/latest/design-docs/router-design',
  },
  routing: {
    title: 'NVIDIA Dynamo: KV-cache-aware routing, user guide',
    url: 'https://docs.nvidia.com/dynamo/latest/user-guides/kv-cache-aware-routing',
  },
  kvbm: {
    title: 'NVIDIA Dynamo: KV block manager',
    url: 'https://docs.nvidia.com/dynamo/latest/design-docs/kvbm-design',
  },
  discovery: {
    title: 'NVIDIA Dynamo: discovery plane',
    url: 'https://docs.nvidia.com/dynamo/latest/design-docs/discovery-plane',
  },
  request: {
    title: 'NVIDIA Dynamo: request plane',
    url: 'https://docs.nvidia.com/dynamo/latest/design-docs/request-plane',
  },
  event: {
    title: 'NVIDIA Dynamo: event plane',
    url: 'https://docs.nvidia.com/dynamo/latest/design-docs/event-plane',
  },
  dynamo: { title: 'NVIDIA Dynamo on GitHub', url: 'https://github.com/ai-dynamo/dynamo' },
  trtllm: { title: 'TensorRT-LLM on GitHub', url: 'https://github.com/NVIDIA/TensorRT-LLM' },
  speculation: {
    title: 'TensorRT-LLM: speculative decoding',
    url: 'https://nvidia.github.io/TensorRT-LLM/advanced/speculative-decoding.html',
  },
  backend: {
    title: 'NVIDIA Dynamo: TensorRT-LLM backend',
    url: 'https://docs.nvidia.com/dynamo/latest/backends/trtllm/README.html',
  },
  eagle: {
    title: 'NVIDIA Dynamo: speculative decoding with EAGLE',
    url: 'https://docs.nvidia.com/dynamo/latest/backends/trtllm/llama4_plus_eagle.html',
  },
  metrics: {
    title: 'NVIDIA Dynamo: Prometheus metrics of TensorRT-LLM, speculation included',
    url: 'https://docs.nvidia.com/dynamo/dev/backends/trtllm/prometheus.html',
  },
  faster: {
    title: 'NVIDIA blog: speculative decoding in TensorRT-LLM',
    url: 'https://developer.nvidia.com/blog/tensorrt-llm-speculative-decoding-boosts-inference-throughput-by-up-to-3-6x/',
  },
  draftHead: {
    title: 'Draft head by the authors of EAGLE, on Hugging Face',
    url: 'https://huggingface.co/yuhuili/EAGLE3-LLaMA3.3-Instruct-70B',
  },
  draftHeadSGLang: {
    title: 'Draft head by the SGLang team, on Hugging Face',
    url: 'https://huggingface.co/lmsys/SGLang-EAGLE3-Llama-3.3-70B-Instruct-SpecForge',
  },
  draftHeadVLLM: {
    title: 'Draft head by Red Hat, for vLLM, on Hugging Face',
    url: 'https://huggingface.co/RedHatAI/Llama-3.3-70B-Instruct-speculator.eagle3',
  },
  practice: {
    title: 'Baseten blog: speculative decoding in production',
    url: 'https://www.baseten.co/blog/how-we-built-production-ready-speculative-decoding-with-tensorrt-llm/',
  },
} satisfies Record<string, Reference>;

/** The name of a public source. */
export type SourceId = keyof typeof sources;

/** All that there is to read on, the vendor's pages among it. */
export const readOn = ({ links }: Vendor): Reference[] => [...Object.values(sources), ...links];
