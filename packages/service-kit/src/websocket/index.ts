export { type AcceptedWebSocket, WebSocketEndpoint } from './endpoint.ts';
export { checkHandshake } from './handshake.ts';
export { routeUpgrades, type Upgrade, upgradeOf } from './upgrades.ts';
