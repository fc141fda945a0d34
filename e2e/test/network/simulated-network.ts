import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

import type { Zone } from './dns-message.ts';
import { NETWORK } from './network-addresses.ts';
import { PeerProcess } from './peer-process.ts';

const COMMAND_MS = 20_000;
const run = promisify(execFile);

/**
 * A host and an internet that owns every address, as two network namespaces without a link to the real network.
 * Packets that a sandbox on the host can send arrive at the internet's peers; none leaves this machine.
 */
export class SimulatedNetwork implements AsyncDisposable {
  /** Name of the host's namespace. */
  readonly host: string;
  /** Name of the internet's namespace. */
  readonly internet: string;
  /** Whether this kernel supports IPv6. */
  readonly hasIpv6 = existsSync('/proc/sys/net/ipv6');
  readonly #names: readonly string[];
  readonly #peers: PeerProcess[] = [];

  private constructor(name: string) {
    this.host = `${name}-host`;
    this.internet = `${name}-internet`;
    this.#names = [this.host, this.internet];
  }

  static async open(): Promise<SimulatedNetwork> {
    const network = new SimulatedNetwork(`e2e-${randomBytes(4).toString('hex')}`);
    try {
      await network.#build();
      return network;
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Program and arguments that run a command on the host. */
  get launcher(): string[] {
    return ['nsenter', `--net=/run/netns/${this.host}`];
  }

  /** Starts a peer on the host or on the internet. */
  async startPeer(
    netns: string,
    options: Parameters<typeof PeerProcess.start>[1],
  ): Promise<PeerProcess> {
    const peer = await PeerProcess.start(netns, options);
    this.#peers.push(peer);
    return peer;
  }

  /** Serves a zone at the addresses of this system's DNS servers, because the service on the host reads the same settings. */
  async serveDns(zone: Zone): Promise<void> {
    for (const server of new Set(new Resolver().getServers())) {
      if (server.includes('%') || server.includes(']')) continue;
      const isLocal = server.startsWith('127.') || server === '::1';
      await this.startPeer(isLocal ? this.host : this.internet, { dns: { address: server, zone } });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#peers.map((peer) => peer.close()));
    for (const name of this.#names) {
      await ip('netns', 'del', name).catch(() => undefined);
    }
  }

  async #build(): Promise<void> {
    for (const name of this.#names) await ip('netns', 'add', name);
    const onHost = (...args: string[]) => ip('-n', this.host, ...args);
    const onInternet = (...args: string[]) => ip('-n', this.internet, ...args);
    const veth = ['eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', this.internet];
    await onHost('link', 'add', ...veth);
    for (const run of [onHost, onInternet]) {
      await run('link', 'set', 'lo', 'up');
      await run('link', 'set', 'eth0', 'up');
    }
    await onHost('addr', 'add', `${NETWORK.host}/24`, 'dev', 'eth0');
    await onInternet('addr', 'add', `${NETWORK.gateway}/24`, 'dev', 'eth0');
    // The host would forward every packet and the internet accepts every packet, so a packet that does not arrive was
    // dropped by a filter.
    await onHost('route', 'add', 'default', 'via', NETWORK.gateway);
    await onInternet('route', 'add', `${NETWORK.host}/32`, 'dev', 'eth0', 'table', 'local');
    await onInternet('route', 'add', 'local', 'default', 'dev', 'lo', 'table', 'local');
    if (!this.hasIpv6) return;
    await onHost('-6', 'addr', 'add', `${NETWORK.host6}/64`, 'dev', 'eth0', 'nodad');
    await onInternet('-6', 'addr', 'add', `${NETWORK.gateway6}/64`, 'dev', 'eth0', 'nodad');
    await onHost('-6', 'route', 'add', 'default', 'via', NETWORK.gateway6);
    await onInternet('-6', 'route', 'add', `${NETWORK.host6}/128`, 'dev', 'eth0', 'table', 'local');
    await onInternet('-6', 'route', 'add', 'local', 'default', 'dev', 'lo', 'table', 'local');
  }
}

async function ip(...args: string[]): Promise<void> {
  await run('ip', args, { timeout: COMMAND_MS });
}
