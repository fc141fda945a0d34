/** The control plane: the public and internal routes, the ledger, placement and reconciliation. */
export { createApiKeyHook } from './auth/authenticators.ts';
export {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from './control-plane.ts';
export { ClusterSecrets } from './crypto/cluster-secrets.ts';
export type { Database } from './database.ts';
export { newImageKey } from './images/object-keys.ts';
export { openObjectStore, reachS3 } from './objects/open-objects.ts';
export { MasterKeyring } from './secrets/master-keyring.ts';
export {
  type Rotation,
  type RotationProgress,
  rotateMasterKey,
} from './secrets/rotate-master-key.ts';
