import type { Server } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';
import { type ProxyHeader, parseProxyHeader } from './proxy-header.ts';
import { speaksTls, watchHandshakes } from './tls-handshakes.ts';

export interface ProxyProtocolOptions {
  /** Addresses or networks of the load balancers, whose connections all begin with a PROXY header. Others have none. */
  readonly from: readonly string[];
  /** How long a header may take, in ms. A connection without one ends. */
  readonly timeoutMs: number;
}

/**
 * Gives connections from load balancers that pass them on as they are the address of their client, from the PROXY header with
 * which they begin. Call it before anything else listens to the server.
 */
export function readProxyHeaders(
  listener: Server,
  { from, timeoutMs }: ProxyProtocolOptions,
): void {
  const balancers = blockListOf(from);
  const clients = new WeakMap<Socket, string>();
  const handlers = listener.listeners('connection');
  listener.removeAllListeners('connection');
  listener.on('connection', (socket: Socket) => {
    const accept = () => {
      for (const handler of handlers) handler.call(listener, socket);
    };
    if (!isIn(balancers, socket.remoteAddress)) {
      accept();
      return;
    }
    const onHeader = ({ address }: ProxyHeader) => {
      if (address !== undefined) clients.set(socket, address);
      if (address !== undefined && !speaksTls(listener)) setRemoteAddress(socket, address);
      accept();
    };
    readHeader(socket, timeoutMs).then(onHeader, () => socket.destroy());
  });
  if (!speaksTls(listener)) return;
  watchHandshakes(listener, {
    secured(tcp, tls) {
      const address = clients.get(tcp);
      if (address !== undefined) setRemoteAddress(tls, address);
    },
  });
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return list;
}

function isIn(list: BlockList, address = ''): boolean {
  const family = isIP(address);
  return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

/** Takes the header off a connection. @throws Error when it has none, ends, or is late */
function readHeader(socket: Socket, timeoutMs: number): Promise<ProxyHeader> {
  const { promise, resolve, reject } = Promise.withResolvers<ProxyHeader>();
  let bytes = Buffer.alloc(0);
  const onReadable = () => {
    try {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      bytes = Buffer.concat([bytes, chunk]);
      const header = parseProxyHeader(bytes);
      if (header === undefined) return;
      done();
      socket.unshift(bytes.subarray(header.length));
      resolve(header);
    } catch (error) {
      onEnd(error);
    }
  };
  const onEnd = (error: unknown = new Error('the connection ended in its PROXY header')) => {
    done();
    reject(error);
  };
  const timer = setTimeout(onEnd, timeoutMs, new Error('the PROXY header is late'));
  const done = () => {
    clearTimeout(timer);
    socket.off('readable', onReadable).off('end', onEnd).off('close', onEnd).off('error', onEnd);
  };
  socket.on('readable', onReadable).on('end', onEnd).on('close', onEnd).on('error', onEnd);
  return promise;
}

/** For all that asks the socket: the address by which a client is limited, and those of X-Forwarded-For. */
function setRemoteAddress(socket: Socket, address: string): void {
  Object.defineProperty(socket, 'remoteAddress', { value: address });
}
