/** What visitors ask about the platform, in the order of the guide; every vendor's file answers all of it. */
export const PLATFORM_QUESTIONS = [
  'gpus-since',
  'gpus-price',
  'gpu-regions',
  'kubernetes-compared',
  'shared-storage',
  'multi-gpu',
  'serverless',
  'production-ready',
  'why-this-platform',
  'training',
] as const;

/** All questions whose answers are the vendor's: of the technical ones, that about the network. */
export const VENDOR_QUESTIONS = [...PLATFORM_QUESTIONS, 'network'] as const;
