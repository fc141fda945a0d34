import { type CaptureRequest, LIMITS } from '@svc/contract';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { tile, update, wholeDisplay } from '../../../test/display.ts';
import { type Capturer, DesktopView } from './desktop-view.ts';
import { viewRates } from './view-rates.ts';
import type { Watcher } from './watcher.ts';

const SETTINGS = { fps: 5, quality: 70 };
const MIB = 1024 * 1024;
let shown = 0;

class Guest implements Capturer {
  readonly requests: CaptureRequest[] = [];
  stops = 0;
  answered: number | undefined;
  capture(request: CaptureRequest): void {
    this.requests.push(request);
  }
  stopCapture(): void {
    this.stops += 1;
  }
}

beforeEach(() => {
  shown = 0;
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

function viewOf(guest: Guest, perSecond = 1024 * MIB, tenants = viewRates(perSecond)): DesktopView {
  const metrics = {
    viewShown: (bytes: number) => {
      shown += bytes;
    },
  };
  return new DesktopView({ guest, tenantId: 'usr_a', tenants, metrics });
}

/** A client that confirms what it gets, unless it `hangs`. */
class Client {
  readonly watcher: Watcher;
  bytes = 0;
  updates = 0;
  constructor(view: DesktopView, { hangs = false } = {}) {
    this.watcher = view.watcherOf({
      unsentBytes: 0,
      showView: (message) => {
        this.bytes += message.length;
        this.updates += 1;
        const number = new DataView(message.buffer).getUint32(8);
        if (!hangs) setTimeout(() => view.acknowledge(this.watcher, number), 1);
      },
    });
  }
}

/** Answers the guest's last request. */
function answer(view: DesktopView, guest: Guest, content: Uint8Array): void {
  const id = guest.requests.at(-1)?.id ?? 0;
  guest.answered = id;
  view.captured({ id, update: Buffer.from(content).toString('base64') });
}

/** Answers a request that has not been answered with a display all of which has changed. */
function answerNew(view: DesktopView, guest: Guest, content: number, bytes: number): void {
  if (guest.requests.at(-1)?.id === guest.answered) return;
  answer(view, guest, update(wholeDisplay(content, bytes)));
}

/** Lets time pass while the whole display changes all the time. */
function pass(view: DesktopView, guest: Guest, ms: number, bytes = 1_000): void {
  for (let at = 0; at < ms; at += 20) {
    answerNew(view, guest, at % 256, bytes);
    vi.advanceTimersByTime(20);
  }
}

describe('the live view of a desktop', () => {
  it('asks for the whole display first, then for changes, and for nothing while nobody watches', () => {
    const guest = new Guest();
    const view = viewOf(guest);
    const client = new Client(view);
    vi.advanceTimersByTime(10_000);
    expect(guest.requests).toEqual([]);
    view.watch(client.watcher, SETTINGS);
    expect(guest.requests).toEqual([{ id: 1, whole: true, quality: 70 }]);
    answer(view, guest, update(wholeDisplay()));
    vi.advanceTimersByTime(1_000);
    expect(client.updates).toBe(1);
    expect(guest.requests.slice(1)).toEqual([{ id: 2, whole: false, quality: 70 }]);
    view.unwatch(client.watcher);
    expect(guest.stops).toBe(1);
    answer(view, guest, update([tile(0, 0)]));
    vi.advanceTimersByTime(10_000);
    expect(guest.requests).toHaveLength(2);
    expect(client.updates).toBe(1);
    view.watch(client.watcher, SETTINGS);
    expect(guest.requests.at(-1)).toMatchObject({ whole: true });
  });

  it('asks in the highest quality that one of its clients wants', () => {
    const guest = new Guest();
    const view = viewOf(guest);
    view.watch(new Client(view).watcher, { fps: 5, quality: 30 });
    view.watch(new Client(view).watcher, { fps: 1, quality: 80 });
    answer(view, guest, update(wholeDisplay()));
    vi.advanceTimersByTime(1_000);
    expect(guest.requests.map(({ quality }) => quality)).toEqual([30, 80]);
  });

  it('asks its guest five times a second at most, however many watch and whatever changes', () => {
    const guest = new Guest();
    const view = viewOf(guest);
    for (let count = 0; count < LIMITS.clientsPerSession; count += 1) {
      view.watch(new Client(view).watcher, SETTINGS);
    }
    pass(view, guest, 4_000, 50);
    expect(guest.requests.length).toBeGreaterThan(15);
    expect(guest.requests.length).toBeLessThanOrEqual(21);
  });

  it('is not slowed down by a client that confirms nothing', () => {
    const guest = new Guest();
    const view = viewOf(guest);
    const slow = new Client(view, { hangs: true });
    const quick = new Client(view);
    view.watch(slow.watcher, SETTINGS);
    view.watch(quick.watcher, SETTINGS);
    pass(view, guest, 10_000);
    expect(slow.updates).toBe(LIMITS.viewUnacknowledged);
    expect(quick.updates).toBeGreaterThan(40);
  });

  it('shares the rate of a session among its clients', () => {
    const guest = new Guest();
    const view = viewOf(guest);
    const clients = Array.from({ length: 16 }, () => new Client(view));
    for (const { watcher } of clients) view.watch(watcher, SETTINGS);
    pass(view, guest, 10_000, 8_000);
    const all = clients.map(({ bytes }) => bytes);
    const total = all.reduce((sum, bytes) => sum + bytes, 0);
    expect(total).toBe(shown);
    expect(total).toBeGreaterThan(9 * LIMITS.viewBytesPerSecondAndSession);
    expect(total).toBeLessThan(13 * LIMITS.viewBytesPerSecondAndSession);
    expect(Math.max(...all)).toBeLessThan(1.3 * Math.min(...all));
  });

  it('of all sessions of a tenant is limited, and that of another tenant by itself', () => {
    const tenants = viewRates(MIB);
    const guests = Array.from({ length: 4 }, () => new Guest());
    const views = guests.map((guest) => viewOf(guest, MIB, tenants));
    const clients = views.map((view) => new Client(view));
    for (const [index, view] of views.entries()) {
      const client = clients[index];
      if (client !== undefined) view.watch(client.watcher, SETTINGS);
    }
    for (let at = 0; at < 10_000; at += 20) {
      for (const [index, view] of views.entries()) {
        const guest = guests[index];
        if (guest !== undefined) answerNew(view, guest, at % 256, 8_000);
      }
      vi.advanceTimersByTime(20);
    }
    expect(shown).toBeGreaterThan(12 * MIB);
    expect(shown).toBeLessThan(15 * MIB);
    expect(tenants.debtMs('usr_b')).toBe(0);
  });

  it.each<[string, Uint8Array]>([
    ['garbage', Buffer.from('<script>')],
    ['nothing', Buffer.alloc(0)],
    ['a picture outside the tiles', update([{ ...tile(0, 0), x: 1 }])],
    ['too large a tile', update([tile(0, 0, 0, LIMITS.viewTileBytes + 1)])],
  ])('asks a guest that sends %s again only after a while', (_what, content) => {
    const guest = new Guest();
    const view = viewOf(guest);
    const client = new Client(view);
    view.watch(client.watcher, SETTINGS);
    for (let at = 0; at < 20_000; at += 20) {
      answer(view, guest, content);
      vi.advanceTimersByTime(20);
    }
    expect(client.updates).toBe(0);
    expect(guest.requests.length).toBeGreaterThan(2);
    expect(guest.requests.length).toBeLessThanOrEqual(5);
    expect(guest.requests.every(({ whole }) => whole)).toBe(true);
    vi.advanceTimersByTime(5_000);
    answer(view, guest, update(wholeDisplay()));
    expect(client.updates).toBe(1);
  });

  it('drops what its guest sends unasked, or once more', () => {
    const guest = new Guest();
    const view = viewOf(guest);
    const client = new Client(view);
    answer(view, guest, update(wholeDisplay()));
    view.watch(client.watcher, SETTINGS);
    const whole = Buffer.from(update(wholeDisplay())).toString('base64');
    for (const id of [0, 2, 99]) view.captured({ id, update: whole });
    expect(client.updates).toBe(0);
    for (let times = 0; times < 50; times += 1) view.captured({ id: 1, update: whole });
    expect(client.updates).toBe(1);
    expect(guest.requests).toHaveLength(1);
  });
});
