import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { OUTER } from './addresses.ts';
import type { Zone } from './dns-message.ts';
import { PeerProcess } from './peer-process.ts';

const COMMAND_MS = 20_000;
const run = promisify(execFile);

/**
 * A machine and a world that owns every address there is, as two network namespaces without any link to the
 * real network. What a sandbox on that machine can reach shows in the world; nothing ever leaves.
 */
export class OuterNetwork implements AsyncDisposable {
  readonly machine: string;
  readonly world: string;
  /** Whether this kernel speaks IPv6 at all. */
  readonly hasIpv6 = existsSync('/proc/sys/net/ipv6');
  readonly #names: readonly string[];
  readonly #peers: PeerProcess[] = [];

  private constructor(name: string) {
    this.machine = `${name}-machine`;
    this.world = `${name}-world`;
    this.#names = [this.machine, this.world];
  }

  static async open(): Promise<OuterNetwork> {
    const network = new OuterNetwork(`e2e-${randomBytes(4).toString('hex')}`);
    try {
      await network.#build();
      return network;
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Program and arguments that run something on the machine. */
  get launcher(): string[] {
    return ['nsenter', `--net=/run/netns/${this.machine}`];
  }

  /** Starts a process on the machine or in the world. */
  async startPeer(
    netns: string,
    options: Parameters<typeof PeerProcess.start>[1],
  ): Promise<PeerProcess> {
    const peer = await PeerProcess.start(netns, options);
    this.#peers.push(peer);
    return peer;
  }

  /** Serves a zone at the addresses that this system's resolver asks: the machine reads the same settings. */
  async serveDns(zone: Zone): Promise<void> {
    for (const server of new Set(new Resolver().getServers())) {
      if (server.includes('%') || server.includes(']')) continue;
      const isLocal = server.startsWith('127.') || server === '::1';
      await this.startPeer(isLocal ? this.machine : this.world, { dns: { address: server, zone } });
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
    const inMachine = (...args: string[]) => ip('-n', this.machine, ...args);
    const inWorld = (...args: string[]) => ip('-n', this.world, ...args);
    const veth = ['eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', this.world];
    await inMachine('link', 'add', ...veth);
    for (const run of [inMachine, inWorld]) {
      await run('link', 'set', 'lo', 'up');
      await run('link', 'set', 'eth0', 'up');
    }
    await inMachine('addr', 'add', `${OUTER.machine}/24`, 'dev', 'eth0');
    await inWorld('addr', 'add', `${OUTER.world}/24`, 'dev', 'eth0');
    // A machine that would hand everything on, and a world that takes everything: what does not arrive was stopped.
    await inMachine('route', 'add', 'default', 'via', OUTER.world);
    await inWorld('route', 'add', `${OUTER.machine}/32`, 'dev', 'eth0', 'table', 'local');
    await inWorld('route', 'add', 'local', 'default', 'dev', 'lo', 'table', 'local');
    if (!this.hasIpv6) return;
    await inMachine('-6', 'addr', 'add', `${OUTER.machine6}/64`, 'dev', 'eth0', 'nodad');
    await inWorld('-6', 'addr', 'add', `${OUTER.world6}/64`, 'dev', 'eth0', 'nodad');
    await inMachine('-6', 'route', 'add', 'default', 'via', OUTER.world6);
    await inWorld('-6', 'route', 'add', `${OUTER.machine6}/128`, 'dev', 'eth0', 'table', 'local');
    await inWorld('-6', 'route', 'add', 'local', 'default', 'dev', 'lo', 'table', 'local');
  }
}

async function ip(...args: string[]): Promise<void> {
  await run('ip', args, { timeout: COMMAND_MS });
}
