import { canMove, type SandboxState, type WorkerSandbox } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { ManualClock } from '../../test/manual-clock.ts';
import { LIMITS, MemoryHost } from '../../test/memory-host.ts';
import { placement } from '../../test/placement.ts';

type Step =
  | {
      readonly do: 'create' | 'abandon' | 'pause' | 'resume' | 'touch' | 'delete';
      readonly which: number;
    }
  | { readonly do: 'die' | 'fail label' | 'heal'; readonly which: number }
  | { readonly do: 'advance'; readonly seconds: number }
  | { readonly do: 'settle' };

const which = fc.nat({ max: 2 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constantFrom('create', 'abandon', 'pause', 'resume', 'touch', 'delete'),
    which,
  }),
  fc.record({ do: fc.constantFrom('die', 'fail label', 'heal'), which }),
  fc.record({ do: fc.constant('advance' as const), seconds: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ do: fc.constant('settle' as const) }),
);

/** Plays steps without awaiting each, so that they overlap as the requests of callers do. */
class Play {
  readonly clock = new ManualClock();
  readonly host = new MemoryHost();
  readonly seen: WorkerSandbox[] = [];
  readonly core: CoreHarness;
  readonly #generations = [1, 1, 1];
  readonly #running = new Set<Promise<unknown>>();

  constructor() {
    this.core = new CoreHarness(this.host, {
      clock: this.clock,
      pool: { standard: 1 },
      onChange: (record) => this.seen.push(record),
    });
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const one of steps) {
      await this.#play(one);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await this.#settle();
  }

  async #play(one: Step): Promise<void> {
    if (one.do === 'advance') {
      this.clock.advance(one.seconds * 1000);
      this.core.reaper.pass();
      return;
    }
    if (one.do === 'settle') return this.#settle();
    const sandbox = this.core.registry.find(`vm_${one.which}`);
    const vm = this.host.live.find(({ labels }) => labels.vm_id === `vm_${one.which}`);
    if (one.do === 'create' || one.do === 'abandon') this.#create(one.which, one.do === 'abandon');
    if (one.do === 'pause') this.#track(sandbox?.power.pause());
    if (one.do === 'resume') this.#track(sandbox?.power.resume());
    if (one.do === 'touch') {
      this.#track(sandbox?.power.ensureRunning(new AbortController().signal));
    }
    if (one.do === 'delete') this.#track(sandbox?.end('deleted'));
    if (one.do === 'die') vm?.die();
    if (vm !== undefined && one.do === 'fail label') vm.faults.label = new Error('disk full');
    if (vm !== undefined && one.do === 'heal') vm.faults.label = undefined;
  }

  #create(which: number, abandon: boolean): void {
    const earlier = this.core.registry.find(`vm_${which}`);
    const generation = this.#generations[which] ?? 1;
    const next = earlier !== undefined && !earlier.isLive ? generation + 1 : generation;
    this.#generations[which] = next;
    const caller = new AbortController();
    this.#track(
      this.core.creator.create(
        placement({
          vm_id: `vm_${which}`,
          generation: next,
          created_at: new Date(this.clock.wall()).toISOString(),
          idle_timeout_seconds: 60,
          max_lifetime_seconds: 120,
        }),
        caller.signal,
      ),
    );
    if (abandon) setImmediate(() => caller.abort(new Error('left')));
  }

  #track(work: Promise<unknown> | undefined): void {
    if (work === undefined) return;
    const settled = work.catch((error: unknown) => {
      const known = error instanceof MicrovmError || (error instanceof Error && 'code' in error);
      const expected = known || ['left', 'disk full'].includes((error as Error).message);
      if (!expected) throw error;
    });
    this.#running.add(settled);
  }

  async #settle(): Promise<void> {
    await Promise.all(this.#running);
    this.#running.clear();
    while (this.core.registry.all().some((sandbox) => sandbox.isEnding)) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

function checkMoves(seen: readonly WorkerSandbox[]): void {
  const last = new Map<string, { state: SandboxState; revision: number }>();
  for (const { vm_id, generation, state, revision = 0 } of seen) {
    const key = `${vm_id} ${generation}`;
    const before = last.get(key) ?? { state: 'creating', revision: -1 };
    // A create that was rolled back may be retried.
    const legal = canMove(before.state, state) || before.state === 'destroyed';
    expect(legal, `${before.state} to ${state}`).toBe(true);
    expect(revision).toBeGreaterThan(before.revision);
    last.set(key, { state, revision });
  }
}

describe('overlapping operations on sandboxes', () => {
  it('move states legally, keep labels in agreement and leak nothing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const play = new Play();
        await play.run(steps);
        const { core, host, seen } = play;
        checkMoves(seen);
        const live = core.registry.live();
        const idle = core.pool.size('standard');
        expect(host.live.length).toBe(live.length + idle);
        expect(core.capacity.free.vcpu).toBe(LIMITS.vcpu - live.length - idle);
        for (const sandbox of live) {
          expect(['running', 'paused']).toContain(sandbox.state);
          const vm = host.vmOf(sandbox.id);
          expect(vm.paused).toBe(sandbox.state === 'paused');
          expect(['running', 'paused']).toContain(vm.labels.state);
          expect(vm.labels.end_reason).toBeUndefined();
        }
        expect(core.faults.filter((fault) => !String(fault).includes('disk full'))).toEqual([]);
      }),
      { numRuns: 400 },
    );
  });
});
