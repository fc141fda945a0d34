import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { residentMib } from '@svc/service-driver';
import { inTurns, timed } from '../measure/in-turns.ts';
import { type Row, type RowContext, type RowResult, ratioResult } from '../measure/row.ts';
import { summarise } from '../measure/statistics.ts';
import { peakResidentMib } from '../service/memory-watch.ts';
import { OpenSsh } from '../ssh/open-ssh.ts';

const BYTES = 64 * 1024 * 1024;
const TIMES_FASTER = 3;
/** Permitted growth of the service's memory during a transfer: half the size of the file. */
const FLAT_MIB = 32;
const INSIDE = '/root/transfer';

/** Transfers of a file to and from a sandbox, compared with `scp`, and the memory that they cost the service. */
export const fileTransfer: Row = {
  name: 'file-transfer',
  pool: 2,
  async run(context) {
    const { service, scratch } = context;
    const { id, host, port } = await service.createSandbox();
    const ssh = await OpenSsh.open({ host, port, dataDir: service.dataDir, scratch });
    try {
      const local = join(scratch, 'transfer');
      await writeFile(local, randomBytes(BYTES));
      const transfer = new Transfer(context, id, local, ssh);
      return [...(await transfer.up()), ...(await transfer.down())];
    } finally {
      await ssh.close();
      await service.client.sandboxes.delete(id);
    }
  },
};

/** Transfers of one file to and from one sandbox. */
class Transfer {
  readonly #context: RowContext;
  readonly #id: string;
  readonly #local: string;
  readonly #ssh: OpenSsh;
  #growths: number[] = [];

  constructor(context: RowContext, id: string, local: string, ssh: OpenSsh) {
    this.#context = context;
    this.#id = id;
    this.#local = local;
    this.#ssh = ssh;
  }

  async up(): Promise<RowResult[]> {
    const { files } = this.#context.service.client.sandboxes;
    const results = await this.#measure('up', {
      ours: async () => {
        await files.write(this.#id, INSIDE, createReadStream(this.#local));
      },
      theirs: () => this.#ssh.upload(this.#local, INSIDE),
    });
    const { output } = await this.#context.service.client.sandboxes.exec(
      this.#id,
      `sha256sum ${INSIDE}`,
    );
    this.#check(output.split(' ')[0] ?? '', await sha256(this.#local));
    return results;
  }

  async down(): Promise<RowResult[]> {
    const { files } = this.#context.service.client.sandboxes;
    const received = `${this.#local}-received`;
    const results = await this.#measure('down', {
      ours: async () => {
        const { stream } = await files.readStream(this.#id, INSIDE);
        await pipeline(stream, createWriteStream(received));
      },
      theirs: () => this.#ssh.download(INSIDE, `${received}-scp`),
    });
    this.#check(await sha256(received), await sha256(this.#local));
    return results;
  }

  async #measure(
    direction: 'up' | 'down',
    sides: { readonly ours: () => Promise<void>; readonly theirs: () => Promise<void> },
  ): Promise<RowResult[]> {
    const { service, runs, progress } = this.#context;
    this.#growths = [];
    await service.settled();
    const first = await residentMib(service.pid);
    const samples = await inTurns({
      runs,
      ours: async () => {
        const before = await residentMib(service.pid);
        let took = 0;
        const peak = await peakResidentMib(service.pid, async () => {
          took = await timed(sides.ours);
        });
        this.#growths.push(peak - before);
        return took;
      },
      comparison: () => timed(sides.theirs),
      onTurn: (done) => progress(`${direction} ${done}/${runs}`),
    });
    const last = await residentMib(service.pid);
    const speed = ratioResult({
      name: `file-${direction}`,
      what: `64 MiB file ${direction}`,
      against: 'scp over an open connection, same VM',
      unit: 'ms',
      ...samples,
      atLeast: TIMES_FASTER,
      inverse: true,
      notes: [
        `resident memory of the service: ${first.toFixed(0)} MiB before, ${last.toFixed(0)} MiB after`,
      ],
    });
    return [speed, this.#memory(direction)];
  }

  #memory(direction: 'up' | 'down'): RowResult {
    const growth = summarise(this.#growths.slice(1));
    return {
      name: `file-${direction}-memory`,
      what: `growth of the service’s memory, file ${direction}`,
      against: '',
      unit: 'MiB',
      ours: growth,
      figure: { text: `${growth.median.toFixed(1)} MiB`, value: growth.median },
      bound: `≤ ${FLAT_MIB} MiB`,
      ok: growth.median <= FLAT_MIB,
      notes: [],
    };
  }

  #check(found: string, expected: string): void {
    if (found !== expected) throw new Error('the file was changed in transfer');
  }
}

async function sha256(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}
