import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { promisify } from 'node:util';

const COMMAND_MS = 20_000;
/** Each network is a /24 in this /16. */
const PREFIX = '10.79';
const NETWORKS = 256;
const LAST_HOST = 254;
/** Bytes per second of a slow link. */
const SLOW_RATE = '256kbit';
const run = promisify(execFile);

/** What a machine no longer gets: packets to it, packets from it, or both. */
export type Cut = 'to' | 'from' | 'both';

/** A machine of the lab: a network namespace with one address. */
export interface LabMachine {
  readonly name: string;
  readonly address: string;
  /** Program and arguments that run a command on it. */
  readonly launcher: readonly string[];
}

/**
 * Network namespaces that a switch connects with each other and with this process, and with nothing else. The links of
 * single machines can be cut, in one direction or both, and slowed down.
 */
export class LabNetwork implements AsyncDisposable {
  readonly #number: number;
  readonly #machines: LabMachine[] = [];

  private constructor(number: number) {
    this.#number = number;
  }

  /** Opens a network that no other lab on this host has. */
  static async open(): Promise<LabNetwork> {
    const network = await LabNetwork.#claim();
    try {
      await network.#build();
      return network;
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The address of this process in the lab. */
  get ownAddress(): string {
    return `${this.#prefix}.1`;
  }

  /** Adds a machine with the next free address. */
  async addMachine(name: string): Promise<LabMachine> {
    const number = this.#machines.length + 2;
    if (number > LAST_HOST) throw new Error('the lab has no address left');
    const namespace = `${this.#switch}-${name}`;
    const machine = {
      name,
      address: `${this.#prefix}.${number}`,
      launcher: ['nsenter', `--net=/run/netns/${namespace}`],
    };
    this.#machines.push(machine);
    await ip('netns', 'add', namespace);
    await this.#connect(portOf(machine), 'eth0', namespace);
    await ip('-n', namespace, 'link', 'set', 'lo', 'up');
    await ip('-n', namespace, 'addr', 'add', `${machine.address}/24`, 'dev', 'eth0');
    return machine;
  }

  /** Drops packets to or from a machine, in addition to what is dropped already. Open connections stay, and hear nothing. */
  async cut(machine: LabMachine, what: Cut): Promise<void> {
    const rules = { to: ['oifname'], from: ['iifname'], both: ['oifname', 'iifname'] }[what];
    for (const side of rules) {
      await this.#nft('add', 'rule', 'bridge', 'lab', 'forward', side, portOf(machine), 'drop');
    }
  }

  /** Limits the link to a machine to 256 kbit/s. */
  async slow(machine: LabMachine): Promise<void> {
    const shape = ['tbf', 'rate', SLOW_RATE, 'burst', '16kb', 'latency', '2s'];
    const port = ['qdisc', 'replace', 'dev', portOf(machine), 'root'];
    await run('tc', ['-n', this.#switch, ...port, ...shape], { timeout: COMMAND_MS });
  }

  /** Undoes every {@link cut} and {@link slow}. */
  async heal(): Promise<void> {
    await this.#nft('flush', 'chain', 'bridge', 'lab', 'forward');
    for (const machine of this.#machines) {
      const qdisc = ['-n', this.#switch, 'qdisc', 'del', 'dev', portOf(machine), 'root'];
      // Fails for a link that was not slowed down.
      await run('tc', qdisc, { timeout: COMMAND_MS }).catch(() => undefined);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const machines = this.#machines.map(({ name }) => `${this.#switch}-${name}`);
    // The kernel removes the links of a namespace, and so their other ends, at some time after it.
    await ip('link', 'del', this.#ownLink).catch(() => undefined);
    for (const namespace of [...machines, this.#switch]) {
      await ip('netns', 'del', namespace).catch(() => undefined);
    }
  }

  /** Takes a number by the name of its switch: the kernel lets only one have it. */
  static async #claim(): Promise<LabNetwork> {
    const first = randomInt(NETWORKS);
    for (let step = 0; ; step += 1) {
      const network = new LabNetwork((first + step) % NETWORKS);
      try {
        await ip('netns', 'add', network.#switch);
        return network;
      } catch (error) {
        const isTaken = error instanceof Error && error.message.includes('File exists');
        if (!isTaken || step + 1 === NETWORKS) throw error;
      }
    }
  }

  get #prefix(): string {
    return `${PREFIX}.${this.#number}`;
  }

  get #switch(): string {
    return `lab-${this.#number}`;
  }

  get #ownLink(): string {
    return `lab${this.#number}`;
  }

  async #build(): Promise<void> {
    await ip('-n', this.#switch, 'link', 'add', 'switch', 'type', 'bridge');
    await ip('-n', this.#switch, 'link', 'set', 'switch', 'up');
    await this.#connect('p-own', this.#ownLink);
    await ip('addr', 'add', `${this.ownAddress}/24`, 'dev', this.#ownLink);
    await this.#nft('add', 'table', 'bridge', 'lab');
    const hook = '{ type filter hook forward priority 0; }';
    await this.#nft('add', 'chain', 'bridge', 'lab', 'forward', hook);
  }

  /** Plugs a link into the switch. Its other end lies in `namespace`, or in that of this process. */
  async #connect(port: string, end: string, namespace?: string): Promise<void> {
    const place = namespace === undefined ? [] : ['netns', namespace];
    await ip(
      'link',
      'add',
      'name',
      end,
      ...place,
      'type',
      'veth',
      'peer',
      'name',
      port,
      'netns',
      this.#switch,
    );
    await ip('-n', this.#switch, 'link', 'set', port, 'master', 'switch', 'up');
    await ip(...(namespace === undefined ? [] : ['-n', namespace]), 'link', 'set', end, 'up');
  }

  async #nft(...words: string[]): Promise<void> {
    const enter = [`--net=/run/netns/${this.#switch}`, 'nft', ...words];
    await run('nsenter', enter, { timeout: COMMAND_MS });
  }
}

/** The name of an interface has at most 15 characters. */
function portOf({ address }: LabMachine): string {
  return `p-${address.split('.').at(-1)}`;
}

async function ip(...words: string[]): Promise<void> {
  await run('ip', words, { timeout: COMMAND_MS });
}
