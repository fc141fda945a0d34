import { defineConfig } from 'vitest/config';

/** Runs the tests that `main.ts` names, with the deadlines of the unit tests. */
export default defineConfig({
  test: {
    // Only the copies in the directory of Stryker are changed. Node reads all other files itself, several times as fast.
    server: { deps: { external: [/^(?!.*\/\.stryker-tmp\/).*\.ts$/] } },
    include: JSON.parse(process.env.MUTATION_TESTS ?? '[]'),
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
