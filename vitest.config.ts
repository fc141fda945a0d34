import { defineConfig } from 'vitest/config';

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
          // Most of them wait: for PostgreSQL, sockets, processes.
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // What is waited for comes as fast as a loaded machine lets it.
          expect: { poll: { timeout: 20_000 } },
          sequence: { groupOrder: 0 },
        },
      },
      {
        // Real micro-VMs, file after file: side by side they would only slow each other down.
        test: {
          name: 'e2e',
          include: ['e2e/src/**/*.test.ts'],
          globalSetup: 'e2e/test/global-setup.ts',
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
          expect: { poll: { timeout: 60_000 } },
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
