import type { NetworkSlot } from '../slots/network-slot.ts';
import { ipv4Frame, readIpv4, udp } from './frames.ts';
import { DNS_SERVER, ECHO_PORT } from './lab-addresses.ts';
import { openTapPort, type TapPort } from './tap-port.ts';

const LENGTH_BYTES = 4;
const WAIT_MS = 20_000;
/** Seldom enough that a slow answer does not use up the limits that are tested. */
const RESEND_MS = 1000;

/** A guest that sends whatever frames a test gives it. */
export class TapGuest {
  readonly #port: TapPort;
  readonly #frames: Buffer[] = [];
  readonly #listeners = new Set<(frame: Buffer) => void>();
  #rest: Buffer = Buffer.alloc(0);
  #markers = 0;

  private constructor(port: TapPort) {
    this.#port = port;
    port.socket.on('error', () => undefined);
    port.socket.on('data', (chunk) => this.#read(chunk));
  }

  static async start(slot: NetworkSlot): Promise<TapGuest> {
    return new TapGuest(await openTapPort(slot));
  }

  /** Every frame that reached the guest so far. */
  get frames(): readonly Buffer[] {
    return this.#frames;
  }

  /** Sends one Ethernet frame. */
  send(frame: Buffer): void {
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(frame.length);
    this.#port.socket.write(Buffer.concat([length, frame]));
  }

  /**
   * Sends until a frame comes back that `accept` makes something of, and returns that.
   * Sending again makes up for a packet that a busy machine lost.
   */
  async ask<T>(frame: Buffer, accept: (frame: Buffer) => T | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const listener = (received: Buffer) => {
      const value = accept(received);
      if (value !== undefined) resolve(value);
    };
    this.#listeners.add(listener);
    this.send(frame);
    const resend = setInterval(() => this.send(frame), RESEND_MS);
    const deadline = setTimeout(() => reject(new Error('no answer reached the guest')), WAIT_MS);
    return promise.finally(() => {
      clearInterval(resend);
      clearTimeout(deadline);
      this.#listeners.delete(listener);
    });
  }

  /**
   * Settles when everything sent before has gone its way: a packet that is sent after it went to
   * the test internet and back.
   */
  async settle(): Promise<void> {
    const marker = Buffer.from(`marker ${++this.#markers}`);
    const datagram = udp(20_000 + this.#markers, ECHO_PORT, marker);
    await this.ask(ipv4Frame({ destination: DNS_SERVER, payload: datagram }), (frame) =>
      readIpv4(frame)?.payload.subarray(8).equals(marker) ? true : undefined,
    );
  }

  async close(): Promise<void> {
    await this.#port.close();
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= LENGTH_BYTES) {
      const end = LENGTH_BYTES + this.#rest.readUInt32BE();
      if (this.#rest.length < end) return;
      const frame = this.#rest.subarray(LENGTH_BYTES, end);
      this.#rest = this.#rest.subarray(end);
      this.#frames.push(frame);
      for (const listener of this.#listeners) listener(frame);
    }
  }
}
