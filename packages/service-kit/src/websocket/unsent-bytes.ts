import type { WebSocket } from 'ws';
import { type Budget, Charge, KeyedBudget } from '../concurrency/index.ts';

const MIB = 1024 * 1024;
const ACCOUNT_BYTES = 128 * MIB;
/** Enough for the longest message. */
const OWN_BYTES = 16 * MIB;
const SHARED_BYTES = 512 * MIB;

/** The budgets of all accounts for {@link UnsentBytes} in one process. */
export function createUnsentBudgets(accountBytes = ACCOUNT_BYTES): KeyedBudget {
  return new KeyedBudget(accountBytes, { own: OWN_BYTES, shared: SHARED_BYTES });
}

/**
 * Bounds what the connections of one account hold of messages that their other sides have not read: what a WebSocket has not
 * sent, beyond some bytes of its own, is charged to a budget until it is sent or the WebSocket is closed.
 */
export class UnsentBytes {
  readonly #ws: WebSocket;
  readonly #charge: Charge;
  #isClosed = false;

  /**
   * @param own bytes that cost nothing, so that a connection that reads is not affected by others of its account
   * @param budget shared by the connections of an account, in bytes
   */
  constructor(ws: WebSocket, own: number, budget: Budget) {
    this.#ws = ws;
    this.#charge = new Charge(budget, own);
    ws.once('close', () => {
      this.#isClosed = true;
      this.#charge.set(0);
    });
  }

  /**
   * Sends a message; calls `onSent` once the system has taken it, or never will. False when the budget has no room for what
   * is unsent now: the caller closes the connection.
   */
  send(data: string | Uint8Array, binary: boolean, onSent?: () => void): boolean {
    this.#ws.send(data, { binary }, () => {
      this.#update();
      onSent?.();
    });
    return this.#update();
  }

  #update(): boolean {
    return this.#isClosed || this.#charge.set(this.#ws.bufferedAmount);
  }
}
