import type { NetworkSlot } from '../../src/network/slots/network-slot.ts';
import { ipv4Frame, readIpv4, udp } from './frames.ts';
import { openTapPort, type TapPort } from './tap-port.ts';
import { DNS_SERVER, ECHO_PORT } from './test-addresses.ts';

const LENGTH_BYTES = 4;
const WAIT_MS = 20_000;
/** Long enough that repeating a query while an answer is slow does not exceed the limits under test. */
const RESEND_MS = 1000;

/** A guest that sends arbitrary Ethernet frames. */
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

  /** Every frame that the guest has received. */
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
   * Sends a frame until `accept` returns a value for a received frame, and returns the value. Repeats the frame, because
   * a busy machine may lose packets.
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
   * Settles when all frames sent before have been delivered or dropped: a marker sent after them has been echoed by the
   * test internet.
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
