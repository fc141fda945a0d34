export {
  type Config,
  ConfigError,
  listenNames,
  loadConfig,
  loadServiceConfig,
  publicUrl,
} from './config.ts';
export { configurationPage } from './document.ts';
export type { AllowedHost, ListenAddress, PoolSizes } from './kinds.ts';
export { secretKey } from './kinds.ts';
export type { Environment } from './read.ts';
export { CLUSTER_SECRET_LENGTH } from './variables.ts';
