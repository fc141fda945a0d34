import type { Row } from '../measure/row.ts';
import { createBurst } from './create-burst.ts';
import { createEmptyPool } from './create-empty-pool.ts';
import { createFromPool } from './create-from-pool.ts';
import { execWarm } from './exec-warm.ts';
import { fileTransfer } from './file-transfer.ts';
import { manySandboxes } from './many-sandboxes.ts';
import { readSandbox } from './read-sandbox.ts';

/** Everything the bench measures, in the order of the table. */
export const ROWS: readonly Row[] = [
  createEmptyPool,
  createFromPool,
  execWarm,
  fileTransfer,
  readSandbox,
  createBurst,
  manySandboxes,
];
