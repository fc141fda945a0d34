export { diagnoseHost, type NetworkFinding } from './host/diagnose-host.ts';
export { claimInstance, releaseInstance, releaseOrphans } from './instance/claim-instance.ts';
export { detachMountsBelow } from './instance/clear-run-dir.ts';
export type { Instance } from './instance/instance.ts';
export { NetworkError, type NetworkErrorCode } from './network-error.ts';
export { DEFAULT_SLOT_LIMITS, type SlotLimits } from './network-policy.ts';
export { type NetworkSlot, TAP } from './slots/network-slot.ts';
export { NetworkSlots, type NetworkSlotsOptions } from './slots/network-slots.ts';
export { removeNetwork } from './slots/remove-network.ts';
