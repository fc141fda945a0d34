import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Most test files wait for PostgreSQL, sockets, processes and VMs: three of them keep two cores busy. */
const WORKERS = 3;

/** The files that take minutes. They start first, so that none of them runs alone at the end. */
const SLOWEST = [
  'apps/cli/src/commands/account-commands.test.ts',
  'apps/cli/src/commands/image/stored-images.test.ts',
  'apps/cli/src/service/fleet/fleet.test.ts',
  'apps/cli/src/service/images/one-machine.test.ts',
  'apps/cli/src/service/life.test.ts',
  'apps/control-plane/src/secrets/secret-bundles.test.ts',
  'apps/guest/src/agents/claude-code/claude-code.test.ts',
  'apps/guest/src/agents/codex/codex.test.ts',
  'apps/guest/src/canvas/canvas-render.test.ts',
  'apps/runtime/src/upgrade/upgrade.test.ts',
  'e2e/src/attacks/network.test.ts',
  'e2e/src/cli/cli.test.ts',
  'e2e/src/faults/disk-full.test.ts',
  'e2e/src/faults/operation-interrupted.test.ts',
  'e2e/src/faults/service-lifecycle.test.ts',
  'e2e/src/sessions/conversation.test.ts',
  'e2e/src/sessions/faults.test.ts',
  'e2e/src/sessions/keys.test.ts',
  'e2e/src/sessions/one-shot.test.ts',
  'e2e/src/sessions/persistence.test.ts',
  'e2e/src/sessions/replay.test.ts',
  'e2e/src/sessions/upstream.test.ts',
  'e2e/src/soak/soak.test.ts',
  'e2e/src/templates/browser.test.ts',
  'packages/microvm/src/image/build/build-layer.test.ts',
  'packages/microvm/src/image/distribution/distribution.test.ts',
  'packages/microvm/src/open-host.test.ts',
  'packages/microvm/src/resources/remove-abandoned.test.ts',
  'scripts/release.test.ts',
];

/** End-to-end tests that bound a time, compare latencies or need the whole machine. They run one after the other, and last. */
const TIMED = [
  'e2e/src/attacks/resources.test.ts',
  'e2e/src/faults/child-process-killed.test.ts',
  'e2e/src/faults/service-killed.test.ts',
  'e2e/src/fleet/images.test.ts',
  'e2e/src/fleet/lost-pieces.test.ts',
  'e2e/src/identity/clones.test.ts',
  'e2e/src/input/other-tenants.test.ts',
  'e2e/src/sandboxes/burst.test.ts',
  'e2e/src/sandboxes/pause.test.ts',
  'e2e/src/sandboxes/reaping.test.ts',
  'e2e/src/templates/cua.test.ts',
  'e2e/src/templates/live-view.test.ts',
];

/** Unit tests that replace modules. Each needs modules of its own; all others share those of their process. */
const MOCKING = [
  'apps/control-plane/src/tenants/one-time-codes.test.ts',
  'apps/worker/src/reaper/disk-pressure-run.test.ts',
  'apps/worker/src/reaper/reaper-run.test.ts',
  'packages/sdk/src/transport/retry.test.ts',
];

const unit = {
  // A third of the time of these tests went to reading the same modules again for each file.
  isolate: false,
  unstubEnvs: true,
  maxWorkers: WORKERS,
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // A condition is polled for as long as it may take on a loaded machine.
  expect: { poll: { timeout: 60_000 } },
  sequence: { groupOrder: 0 },
};

const endToEnd = {
  isolate: false,
  // Of one file. More VMs at once take as long together, and longer each.
  maxConcurrency: 3,
  globalSetup: 'e2e/test/global-setup.ts',
  testTimeout: 300_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 60_000 } },
};

class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isSlow = ({ moduleId }: TestSpecification) =>
      SLOWEST.some((file) => moduleId.endsWith(`/${file}`));
    const { slow = [], other = [] } = Object.groupBy(await super.sort(files), (file) =>
      isSlow(file) ? 'slow' : 'other',
    );
    return [...slow, ...other];
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: SlowestFirst },
    projects: [
      {
        test: {
          ...unit,
          name: 'unit',
          globalSetup: 'packages/store/test/global-setup.ts',
          include: [
            '{apps,packages,tools}/*/src/**/*.test.ts',
            'bench/src/**/*.test.ts',
            'scripts/*.test.ts',
          ],
          exclude: MOCKING,
        },
      },
      { test: { ...unit, name: 'unit-mocking', isolate: true, include: MOCKING } },
      {
        test: {
          ...endToEnd,
          name: 'e2e',
          include: ['e2e/src/**/*.test.ts'],
          exclude: TIMED,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...endToEnd,
          name: 'e2e-timed',
          include: TIMED,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
