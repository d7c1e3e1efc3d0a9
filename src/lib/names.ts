import { type Mode, type ModeState, type Speculation, type State, workloadSettings } from '../client';
import { capital } from './text';

const modes: Record<Mode, { name: string; short: string }> = {
  kv: { name: 'KV-aware', short: 'KV' },
  round_robin: { name: 'Round-robin', short: 'RR' },
  least_loaded: { name: 'Least loaded', short: 'LL' },
  unknown: { name: 'Mode unknown', short: 'Unknown' },
};

const speculations: Record<Speculation, string> = {
  off: 'Off',
  draft: 'Draft model',
  eagle3: 'EAGLE-3',
  not_recorded: 'Not recorded',
};

/** Returns the name of a routing mode. */
export function modeName(mode: Mode): string {
  return modes[mode].name;
}

/** Returns a routing mode as the word before "routing", or that it is not known. */
export function routingName(mode: Mode): string {
  return mode === 'unknown' ? 'Routing mode unknown' : `${modeName(mode)} routing`;
}

/** Returns a routing mode as the heading of a column. */
export function modeShort(mode: Mode): string {
  return modes[mode].short;
}

/** Returns the source of the mode in force, as the subject of a sentence. */
export function modeSource({ mode_from, driver }: Pick<State, 'mode_from' | 'driver'>): string {
  switch (mode_from) {
    case 'operator':
      return 'the operator';
    case 'metrics':
      return 'the router’s own metrics';
    default:
      return `the mode driver “${driver}”`;
  }
}

const routers: Record<string, string> = {
  smg: 'SMG',
  litellm: 'LiteLLM',
  aibrix: 'AIBrix',
  'production-stack': 'vLLM production stack',
  'ray-serve': 'Ray Serve LLM',
  envoy: 'Envoy',
};

/** Returns the name of a recognized router other than Dynamo’s; undefined for Dynamo’s, and where there is none. */
export function otherRouter(id: string | undefined): string | undefined {
  return id === undefined || id === 'dynamo' ? undefined : (routers[id] ?? id);
}

/** Returns the name of a kind of speculative decoding. */
export function speculationName(speculation: Speculation): string {
  return speculations[speculation];
}

/** The name of an arm, else that of its mode. */
export function servingName({ arm, mode }: Pick<ModeState, 'arm' | 'mode'>): string {
  return arm ?? modeName(mode);
}

/** Returns what the change of mode that began a step did to the caches; undefined where there was none. */
export function cachesText({ step: { caches } }: Pick<State, 'step'>): string | undefined {
  return caches && (caches === 'kept' ? 'caches kept' : 'cold caches');
}

/** The name of an arm, else a mode with its speculation, where there is any. */
export function modeText({ arm, mode, speculation }: ModeState): string {
  if (arm !== undefined) {
    return arm;
  }
  const without = speculation === 'off' || speculation === 'not_recorded';
  return without ? modeName(mode) : `${modeName(mode)} with ${speculationName(speculation)}`;
}

/** Returns an engine's name in its maker's spelling. */
export function engineName(engine: string | undefined): string | undefined {
  return engine
    ?.replace(/\btrtllm\b/, 'TensorRT-LLM')
    .replace(/\bvllm\b/, 'vLLM')
    .replace(/\bsglang\b/, 'SGLang');
}

const settings: Record<string, string> = {
  ...Object.fromEntries(Object.entries(workloadSettings).map(([path, { label }]) => [path, label])),
  gpu: 'GPU',
  tensor_parallel: 'Tensor parallelism',
  followup: 'Follow-up questions',
  dynamo: 'NVIDIA Dynamo',
  kv_cache_dtype: 'KV cache dtype',
  free_gpu_memory_fraction: 'Free GPU memory fraction',
  settings: 'Other settings',
};

/** Returns the name of a setting of which the API reports a difference. */
export function settingName(field: string): string {
  return settings[field] ?? capital(field.replaceAll('_', ' '));
}

/** Formats a value of such a setting. */
export function settingText(field: string, value: string): string {
  switch (field) {
    case 'engine':
      return engineName(value) ?? value;
    case 'speculation':
      return speculations[value as Speculation] ?? value;
    default:
      return value;
  }
}

/**
 * Returns a mode with its speculation as a key, and as the value of a field: "kv off", and of an arm
 * "kv off cache-aware".
 */
export function modeKey({ arm, mode, speculation }: ModeState): string {
  return arm === undefined ? `${mode} ${speculation}` : `${mode} ${speculation} ${arm}`;
}
