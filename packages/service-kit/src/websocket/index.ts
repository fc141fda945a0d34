export { type AcceptedWebSocket, WebSocketEndpoint } from './endpoint.ts';
export { checkHandshake } from './handshake.ts';
export { createUnsentBudgets, UnsentBytes } from './unsent-bytes.ts';
export { routeUpgrades, type Upgrade, upgradeOf } from './upgrades.ts';
