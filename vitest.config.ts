import { defineConfig } from 'vitest/config';

/** Most test files wait for PostgreSQL, sockets, processes and VMs, so two of them share two cores well. */
const WORKERS = 2;

/** End-to-end tests that bound a time or compare latencies. They run one after the other, and last. */
const TIMED = [
  'e2e/src/attacks/resources.test.ts',
  'e2e/src/faults/child-process-killed.test.ts',
  'e2e/src/faults/service-killed.test.ts',
  'e2e/src/identity/clones.test.ts',
  'e2e/src/input/other-tenants.test.ts',
  'e2e/src/sandboxes/burst.test.ts',
  'e2e/src/sandboxes/pause.test.ts',
  'e2e/src/sandboxes/reaping.test.ts',
];

const endToEnd = {
  globalSetup: 'e2e/test/global-setup.ts',
  testTimeout: 300_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 60_000 } },
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            '{apps,packages,tools}/*/src/**/*.test.ts',
            'bench/src/**/*.test.ts',
            'scripts/*.test.ts',
          ],
          maxWorkers: WORKERS,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // A condition is polled for as long as it may take on a loaded machine.
          expect: { poll: { timeout: 20_000 } },
          sequence: { groupOrder: 0 },
        },
      },
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
