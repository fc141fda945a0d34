export { type AcceptedWebSocket, WebSocketEndpoint } from './endpoint.ts';
export { routeUpgrades, type Upgrade } from './upgrades.ts';
