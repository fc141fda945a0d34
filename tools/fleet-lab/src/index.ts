/** A fleet for tests, on one machine, of which any piece can be killed, cut off and slowed down. */

export type { BackingServices } from './backing-services.ts';
export { CUSTOMER_SCRIPT, Customer } from './customer.ts';
export { FleetLab, type FleetSize } from './fleet-lab.ts';
export type { Cut, LabMachine, LabNetwork } from './lab-network.ts';
export { Piece } from './piece.ts';
export { RequestLoad } from './request-load.ts';
export { rollingRestart } from './rolling-restart.ts';
