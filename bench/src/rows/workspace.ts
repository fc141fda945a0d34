import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { inTurns, timed } from '../measure/in-turns.ts';
import { type Row, type RowContext, type RowResult, ratioResult } from '../measure/row.ts';
import { summarise } from '../measure/statistics.ts';
import { OpenSsh } from '../ssh/open-ssh.ts';

const TIMES_FASTER = 2;
/** Of the time of the first flush. */
const UNCHANGED_AT_MOST = 0.01;
/** A run copies the tree four times. */
const MOST_RUNS = 5;
/** A flush without a change takes little more than the noise of one pause. */
const PAUSES = 9;
const OUTSIDE = '/root/tree';
const INSIDE = '/workspace/tree';

interface Tree {
  readonly name: string;
  readonly what: string;
  /** Makes it in the present directory, of bytes that do not compress. */
  readonly make: string;
}

const TREES: readonly Tree[] = [
  {
    name: 'small',
    what: '1,000 files of 4 KiB',
    make: 'head -c 4096000 /dev/urandom | split --bytes=4096 --suffix-length=3 --numeric-suffixes',
  },
  { name: 'large', what: 'a file of 256 MiB', make: 'head -c 268435456 /dev/urandom > file' },
];

/** Milliseconds of one run. */
interface Times {
  readonly flush: number;
  readonly load: number;
  readonly unchanged: number;
  readonly rsyncDown: number;
  readonly rsyncUp: number;
}

/** Loads and flushes of workspaces, compared with `rsync` over an open connection to the same VM. */
export const workspace: Row = {
  name: 'workspace',
  pool: 2,
  async run(context) {
    const results: RowResult[] = [];
    for (const tree of TREES) {
      const times: Times[] = [];
      const runs = Math.min(context.runs, MOST_RUNS);
      for (let run = 1; run <= runs; run += 1) {
        times.push(await new Run(context, tree, `${tree.name}-${run}`).measure());
        context.progress(`${tree.name} ${run}/${runs}`);
      }
      results.push(...resultsOf(tree, times));
    }
    return results;
  },
};

function resultsOf({ name, what }: Tree, times: readonly Times[]): RowResult[] {
  const all = (part: keyof Times) => times.map((one) => one[part]);
  const against = { unit: 'ms', against: 'rsync, same VM', inverse: true, atLeast: TIMES_FASTER };
  return [
    ratioResult({
      ...against,
      name: `workspace-load-${name}`,
      what: `load ${what}, from the create to the first command`,
      ours: all('load'),
      comparison: all('rsyncUp'),
    }),
    ratioResult({
      ...against,
      name: `workspace-flush-${name}`,
      what: `flush ${what}`,
      ours: all('flush'),
      comparison: all('rsyncDown'),
    }),
    ratioResult({
      name: `workspace-unchanged-${name}`,
      what: `flush ${what} without a change`,
      against: 'the first flush',
      unit: 'ms',
      ours: all('unchanged'),
      comparison: all('flush'),
      atMost: UNCHANGED_AT_MOST,
      notes: [
        `a flush is the delete of its sandbox, one without a change the median of ${PAUSES} pauses; less those of a sandbox without a workspace`,
      ],
    }),
  ];
}

/** One tree on its way from a sandbox to the next. */
class Run {
  readonly #context: RowContext;
  readonly #tree: Tree;
  readonly #wanted: { workspace_enabled: true; app_id: string; capset_id: string };
  /** The directory here that `rsync` copies to and from. */
  readonly #local: string;

  constructor(context: RowContext, tree: Tree, name: string) {
    this.#context = context;
    this.#tree = tree;
    this.#wanted = { workspace_enabled: true, app_id: 'bench', capset_id: name };
    this.#local = join(context.scratch, `tree-${name}`);
  }

  async measure(): Promise<Times> {
    const { service } = this.#context;
    const { sandboxes } = service.client;
    const plain = await service.createSandbox();
    let isDeleted = false;
    await mkdir(this.#local);
    try {
      const { digest, rsyncDown, deleted } = await this.#save();
      const { load, rsyncUp, unchanged } = await this.#load(digest, plain.id);
      const flush = deleted - (await timed(() => sandboxes.delete(plain.id)));
      isDeleted = true;
      return { load, flush, unchanged, rsyncDown, rsyncUp };
    } finally {
      if (!isDeleted) await sandboxes.delete(plain.id);
      await rm(this.#local, { recursive: true });
    }
  }

  /** Makes the tree in a sandbox, copies it here, and deletes the sandbox, which saves its workspace. */
  async #save() {
    const { service } = this.#context;
    const sandbox = await service.createSandbox(this.#wanted);
    let deleted: number | undefined;
    try {
      await this.#exec(sandbox.id, `mkdir ${OUTSIDE} && cd ${OUTSIDE} && ${this.#tree.make}`);
      const rsyncDown = await this.#overSsh(sandbox, (ssh) => ssh.syncDown(OUTSIDE, this.#local));
      const digest = await this.#digest(sandbox.id, OUTSIDE);
      await service.settled();
      await this.#exec(sandbox.id, `mv ${OUTSIDE} ${INSIDE}`);
      deleted = await timed(() => service.client.sandboxes.delete(sandbox.id));
      return { digest, rsyncDown, deleted };
    } finally {
      if (deleted === undefined) await service.client.sandboxes.delete(sandbox.id);
    }
  }

  /** Loads the workspace into another sandbox, and saves it unchanged. */
  async #load(digest: string, plainId: string) {
    const { service } = this.#context;
    await service.settled();
    const start = performance.now();
    const sandbox = await service.createSandbox(this.#wanted);
    try {
      await this.#exec(sandbox.id, 'true');
      const load = performance.now() - start;
      if ((await this.#digest(sandbox.id, INSIDE)) !== digest) {
        throw new Error('the workspace was not loaded as it was');
      }
      const unchanged = await this.#timeUnchanged(sandbox.id, plainId);
      const rsyncUp = await this.#overSsh(sandbox, (ssh) => ssh.syncUp(this.#local, OUTSIDE));
      return { load, rsyncUp, unchanged };
    } finally {
      await service.client.sandboxes.delete(sandbox.id);
    }
  }

  /** How much longer pauses take with a workspace than without: the difference of the medians. */
  async #timeUnchanged(id: string, plainId: string): Promise<number> {
    const { ours, comparison } = await inTurns({
      runs: PAUSES,
      warmUps: 0,
      ours: () => this.#timePause(id),
      comparison: () => this.#timePause(plainId),
    });
    return Math.max(0, summarise(ours).median - summarise(comparison).median);
  }

  async #timePause(id: string): Promise<number> {
    const { service } = this.#context;
    await service.settled();
    const took = await timed(() => service.client.sandboxes.pause(id));
    await service.client.sandboxes.resume(id);
    return took;
  }

  async #overSsh(
    { host, port }: { readonly host: string; readonly port: number },
    work: (ssh: OpenSsh) => Promise<void>,
  ): Promise<number> {
    const { service, scratch } = this.#context;
    const ssh = await OpenSsh.open({ host, port, dataDir: service.dataDir, scratch });
    try {
      return await timed(() => work(ssh));
    } finally {
      await ssh.close();
    }
  }

  #digest(id: string, directory: string): Promise<string> {
    const listed =
      'find . -type f -print0 | sort --zero-terminated | xargs -0 sha256sum | sha256sum';
    return this.#exec(id, `cd ${directory} && ${listed}`);
  }

  async #exec(id: string, command: string): Promise<string> {
    const { exit_code, output } = await this.#context.service.client.sandboxes.exec(id, command);
    if (exit_code !== 0) throw new Error(`${command} failed: ${output}`);
    return output;
  }
}
