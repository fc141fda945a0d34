/** The control plane: every route of the base URL, the ledger, placement, and what keeps both right. */
export {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from './control-plane.ts';
export type { Database } from './database.ts';
