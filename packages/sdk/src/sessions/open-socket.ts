import type { OpenSocket } from './socket.ts';

/** Opens a WebSocket with the implementation of this platform, which is loaded on first use. */
export const openSocket: OpenSocket = async (request, handlers) => {
  const isNode = globalThis.process?.versions?.node !== undefined;
  if (isNode) return (await import('./node-socket.ts')).openNodeSocket(request, handlers);
  return (await import('./browser-socket.ts')).openBrowserSocket(request, handlers);
};
