import type { Socket } from 'node:dgram';
import { once } from 'node:events';
import type { Server } from 'node:net';
import { NetworkError } from '../network-error.ts';
import { askUpstream } from './ask-upstream.ts';
import { ClientLimits } from './client-limits.ts';
import { RCODE } from './dns-codes.ts';
import { emptyAnswer, filteredAnswer, fitToTcp, fitToUdp } from './guest-answer.ts';
import { type GuestQuery, parseGuestQuery } from './guest-query.ts';
import { serveTcp } from './tcp-server.ts';
import { serveUdp } from './udp-server.ts';
import { systemUpstreams } from './upstream-servers.ts';

export interface DnsForwarderOptions {
  readonly address: string;
  readonly port: number;
  /** The slot index of the sandbox with this address. Undefined when the address belongs to no sandbox. */
  readonly clientOf: (address: string) => number | undefined;
  /** Queries per second and size of a burst, for each sandbox. */
  readonly rate: number;
  readonly burst: number;
  /** Servers to query, in this order. Default: those of this machine. */
  readonly upstreams?: (() => readonly string[]) | undefined;
}

/**
 * The only DNS server that guests can reach. Its answers contain only public addresses, so that no name resolves to an
 * address in the networks that the packet filter blocks.
 */
export class DnsForwarder {
  readonly #options: DnsForwarderOptions;
  readonly #upstreams: () => readonly string[];
  readonly #limits: ClientLimits;
  readonly #closing = new AbortController();
  #udp: Socket | undefined;
  #tcp: Server | undefined;

  private constructor(options: DnsForwarderOptions) {
    this.#options = options;
    this.#upstreams = options.upstreams ?? systemUpstreams();
    this.#limits = new ClientLimits(options.rate, options.burst);
  }

  /** @throws NetworkError `dns_listen_failed` when the address cannot be bound */
  static async open(options: DnsForwarderOptions): Promise<DnsForwarder> {
    const forwarder = new DnsForwarder(options);
    try {
      await forwarder.#listen();
      return forwarder;
    } catch (error) {
      await forwarder.close();
      const message = `cannot serve DNS at ${options.address}:${options.port}`;
      throw new NetworkError('dns_listen_failed', message, { cause: error });
    }
  }

  /** Stops answering. Queries in progress get no answer. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the DNS forwarder is closed'));
    const ending = [];
    if (this.#udp !== undefined) ending.push(once(this.#udp.close(), 'close'));
    if (this.#tcp?.listening) ending.push(once(this.#tcp.close(), 'close'));
    this.#udp = undefined;
    this.#tcp = undefined;
    await Promise.all(ending);
  }

  async #listen(): Promise<void> {
    const { address, port } = this.#options;
    this.#udp = await serveUdp(
      address,
      port,
      (message, from) => this.#answer(message, from, fitToUdp),
      this.#closing.signal,
    );
    this.#tcp = await serveTcp(
      address,
      port,
      (message, from) => this.#answer(message, from, fitToTcp),
      this.#closing.signal,
    );
  }

  async #answer(
    message: Buffer,
    from: string,
    fit: (query: GuestQuery, answer: Buffer) => Buffer,
  ): Promise<Buffer | undefined> {
    const client = this.#options.clientOf(from);
    // Before the query is parsed, so that the limits also bound the work for what is malformed or refused. An answer to a
    // query beyond them would be work too: a resolver tries again later.
    const leave = client === undefined ? undefined : this.#limits.enter(client);
    if (leave === undefined) return undefined;
    try {
      const query = parseGuestQuery(message);
      return query === undefined ? undefined : await this.#reply(query, fit);
    } finally {
      leave();
    }
  }

  async #reply(
    query: GuestQuery,
    fit: (query: GuestQuery, answer: Buffer) => Buffer,
  ): Promise<Buffer> {
    try {
      if (query.rcode !== undefined) return emptyAnswer(query, query.rcode);
      return fit(query, await this.#forward(query));
    } catch {
      // The guest has no use for the cause of the failure: it can only try again later.
      return emptyAnswer(query, RCODE.serverFailure);
    }
  }

  async #forward(query: GuestQuery): Promise<Buffer> {
    const answer = await askUpstream(this.#upstreams(), query.question, this.#closing.signal);
    return filteredAnswer(query, answer);
  }
}
