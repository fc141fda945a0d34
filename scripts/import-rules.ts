import type { IConfiguration } from 'dependency-cruiser';

/**
 * Which code may import which. `npm run imports` checks it; scripts/imports.test.ts plants a
 * violation of every rule. Type-only imports and test support count as much as any other import.
 *
 * Imports run one way: apps → packages → contract.
 */

const WORKSPACES = '^(apps|packages|tools)/([^/]+)/';
const TEST_FILE = '[.]test[.]ts$';

export default {
  forbidden: [
    {
      name: 'no-circles',
      comment: 'Files that import each other cannot be read or changed one at a time.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'contract-imports-nothing-of-ours',
      comment: 'The contract defines the wire formats; everything else depends on it.',
      severity: 'error',
      from: { path: '^packages/contract/' },
      to: { path: '^(apps|packages|tools|e2e|bench)/', pathNot: '^packages/contract/' },
    },
    {
      name: 'packages-import-no-apps',
      comment: 'Packages are shared by the apps and know none of them.',
      severity: 'error',
      from: { path: '^packages/' },
      to: { path: '^apps/' },
    },
    {
      name: 'apps-import-no-other-app',
      comment: 'Apps speak HTTPS to each other. Only the composition root starts several of them.',
      severity: 'error',
      from: {
        path: '^apps/([^/]+)/',
        pathNot: '^apps/cli/(src/service/|test/|.*[.]test[.]ts$)',
      },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'apps-are-imported-by-their-index',
      comment: 'An app exports everything that the composition root needs from its src/index.ts.',
      severity: 'error',
      from: { pathNot: '^apps/' },
      to: { path: '^apps/', pathNot: '^apps/[^/]+/src/index[.]ts$' },
    },
    {
      name: 'workspaces-are-imported-by-name',
      comment: 'Another workspace is imported by its package name, through its exports.',
      severity: 'error',
      from: { path: WORKSPACES },
      to: {
        path: '^(apps|packages|tools)/',
        pathNot: '^$1/$2/',
        dependencyTypesNot: ['aliased-workspace'],
      },
    },
    {
      name: 'production-code-imports-no-test-code',
      comment: 'Test support lives in <package>/test; nothing under src but tests imports it.',
      severity: 'error',
      from: { path: '^(apps|packages)/[^/]+/src/', pathNot: TEST_FILE },
      to: { path: [TEST_FILE, '^(apps|packages)/[^/]+/test/', '^(e2e|bench)/'] },
    },
    {
      name: 'production-code-imports-no-test-runner',
      comment: 'Nothing under src but tests imports vitest.',
      severity: 'error',
      from: { path: '/src/', pathNot: [TEST_FILE, '^e2e/'] },
      to: { path: '^(node_modules/)?vitest' },
    },
    {
      name: 'end-to-end-tests-use-the-public-api',
      comment: 'End-to-end tests know what a customer knows: the SDK and the contract.',
      severity: 'error',
      from: { path: '^e2e/' },
      to: {
        path: '^(apps|packages|tools|bench)/',
        pathNot: '^(packages/(sdk|contract)|tools/(fleet-lab|model-server|service-driver))/',
      },
    },
    {
      name: 'bench-uses-the-public-api',
      comment:
        'Only the bare comparisons and the simulation of a fleet import an app or its packages.',
      severity: 'error',
      from: { path: '^bench/', pathNot: '^bench/src/(bare|scale)/' },
      to: {
        path: '^(apps|packages|tools|e2e)/',
        pathNot: '^(packages/(sdk|contract)|tools/(fleet-lab|model-server|service-driver))/',
      },
    },
    {
      name: 'a-sandbox-knows-no-other-part-of-the-worker',
      comment: 'The other folders of the worker act on sandboxes; clock and logger are shared.',
      severity: 'error',
      from: { path: '^apps/worker/src/sandbox/', pathNot: TEST_FILE },
      to: { path: '^apps/worker/src/[^/]+/', pathNot: '^apps/worker/src/sandbox/' },
    },
    {
      name: 'agents-know-no-sessions',
      comment: 'A session is one use of an agent; one-shot tasks are the other.',
      severity: 'error',
      from: { path: '^apps/worker/src/agents/', pathNot: TEST_FILE },
      to: { path: '^apps/worker/src/(sessions|http)/' },
    },
    {
      name: 'tools-import-no-apps',
      comment: 'Tools serve the tests and start apps as processes.',
      severity: 'error',
      from: { path: '^tools/' },
      to: { path: '^(apps|e2e|bench)/' },
    },
    {
      name: 'imports-resolve',
      comment: 'A specifier that resolves to nothing would escape every other rule.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'dependencies-are-declared',
      comment: 'A workspace names in its package.json every package that it imports.',
      severity: 'error',
      from: {},
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)dist/' },
    combinedDependencies: true,
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.js'],
    },
  },
} satisfies IConfiguration;
