import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cruise, type ICruiseOptions, type ICruiseResult } from 'dependency-cruiser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import configuration from './import-rules.ts';

/** One violation per rule: the paths and contents of the files that commit it. */
const VIOLATIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'no-circles': {
    'packages/store/src/circle-a.ts':
      "import type { B } from './circle-b.ts';\nexport type A = B[];",
    'packages/store/src/circle-b.ts':
      "import type { A } from './circle-a.ts';\nexport type B = A[];",
  },
  'contract-imports-nothing-of-ours': {
    'packages/contract/src/planted.ts': "import '@svc/store';",
  },
  'packages-import-no-apps': {
    'packages/store/src/planted.ts': "import '@svc/worker';",
  },
  'apps-import-no-other-app': {
    'apps/control-plane/src/planted.ts': "import '@svc/worker';",
  },
  'apps-are-imported-by-their-index': {
    'bench/src/bare/planted.ts': "import '../../../apps/worker/src/inner.ts';",
    'apps/worker/src/inner.ts': 'export const inner = 1;',
  },
  'workspaces-are-imported-by-name': {
    'apps/worker/src/planted.ts': "import '../../../packages/store/src/index.ts';",
  },
  'production-code-imports-no-test-code': {
    'packages/store/src/uses-support.ts': "import '../test/support.ts';",
    'packages/store/test/support.ts': 'export const support = 1;',
  },
  'production-code-imports-no-test-runner': {
    'packages/store/src/uses-runner.ts': "import 'vitest';",
  },
  'end-to-end-tests-use-the-public-api': {
    'e2e/src/planted.test.ts': "import '@svc/store';",
  },
  'bench-uses-the-public-api': {
    'bench/src/rows/planted.ts': "import '@svc/store';",
  },
  'a-sandbox-knows-no-other-part-of-the-worker': {
    'apps/worker/src/sandbox/planted.ts': "import '../vms/pool.ts';",
    'apps/worker/src/vms/pool.ts': 'export const pool = 1;',
  },
  'agents-know-no-sessions': {
    'apps/worker/src/agents/planted.ts': "import '../sessions/session.ts';",
    'apps/worker/src/sessions/session.ts': 'export const session = 1;',
  },
  'tools-import-no-apps': {
    'tools/model-server/src/planted.ts': "import '@svc/worker';",
  },
  'imports-resolve': {
    'packages/store/src/unresolved.ts': "import './nowhere.ts';",
  },
  'dependencies-are-declared': {
    'packages/store/src/undeclared.ts': "import 'undeclared';",
  },
};

/** Imports that the rules allow. */
const ALLOWED: Readonly<Record<string, string>> = {
  'apps/cli/src/service/start.ts': "import '@svc/worker';",
  'apps/worker/src/allowed.ts': "import '@svc/store';\nimport '@svc/contract';",
  'apps/worker/src/allowed.test.ts': "import 'vitest';\nimport '../test/support.ts';",
  'apps/worker/test/support.ts': "import '@svc/contract';",
  'e2e/src/allowed.test.ts': "import '@svc/contract';\nimport 'vitest';",
};

const WORKSPACES = [
  'apps/cli',
  'apps/control-plane',
  'apps/worker',
  'bench',
  'e2e',
  'packages/contract',
  'packages/store',
  'tools/model-server',
];

describe('the import rules', () => {
  let repository: string;
  let report: ICruiseResult;

  beforeAll(async () => {
    repository = await mkdtemp(join(tmpdir(), 'svc-imports-'));
    await plantWorkspaces();
    for (const files of [...Object.values(VIOLATIONS), ALLOWED]) {
      for (const [path, source] of Object.entries(files)) await plant(path, source);
    }
    const { options, ...ruleSet } = configuration;
    const result = await cruise(['apps', 'packages', 'tools', 'e2e', 'bench'], {
      ...options,
      ruleSet,
      validate: true,
      baseDir: repository,
    } as ICruiseOptions);
    report = result.output as ICruiseResult;
  });

  afterAll(() => rm(repository, { recursive: true, force: true }));

  it('each have a planted violation', () => {
    const rules = configuration.forbidden.map((rule: { name: string }) => rule.name);
    expect(Object.keys(VIOLATIONS).toSorted()).toEqual(rules.toSorted());
  });

  it.each(Object.entries(VIOLATIONS))('report a violation of %s', (rule, files) => {
    const reported = report.summary.violations
      .filter((violation) => violation.rule.name === rule)
      .map((violation) => violation.from);
    expect(reported.some((file) => file in files)).toBe(true);
  });

  it('accept allowed imports', () => {
    const reported = report.summary.violations.map((violation) => violation.from);
    expect(reported.filter((file) => file in ALLOWED)).toEqual([]);
  });

  /** Creates the workspaces and links them by name, as npm does. */
  async function plantWorkspaces(): Promise<void> {
    const workspaces = ['apps/*', 'packages/*', 'tools/*', 'bench', 'e2e'];
    const devDependencies = { vitest: '*' };
    await plant('package.json', JSON.stringify({ workspaces, devDependencies }));
    for (const workspace of WORKSPACES) {
      const name = `@svc/${workspace.split('/').at(-1)}`;
      const dependencies = Object.fromEntries(
        WORKSPACES.map((other) => [`@svc/${other.split('/').at(-1)}`, '*']),
      );
      await plant(
        `${workspace}/package.json`,
        JSON.stringify({ name, exports: './src/index.ts', dependencies }),
      );
      await plant(`${workspace}/src/index.ts`, 'export {};');
      await link(name, workspace);
    }
    for (const library of ['vitest', 'undeclared']) {
      await plant(`node_modules/${library}/package.json`, JSON.stringify({ name: library }));
      await plant(`node_modules/${library}/index.js`, 'export {};');
    }
  }

  async function link(name: string, workspace: string): Promise<void> {
    await mkdir(join(repository, 'node_modules/@svc'), { recursive: true });
    await symlink(join('../..', workspace), join(repository, 'node_modules', name));
  }

  async function plant(path: string, source: string): Promise<void> {
    const file = join(repository, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, source);
  }
});
