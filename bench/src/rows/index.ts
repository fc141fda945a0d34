import type { Row } from '../measure/row.ts';
import { createEmptyPool } from './create-empty-pool.ts';
import { createFromPool } from './create-from-pool.ts';
import { execWarm } from './exec-warm.ts';

/** Everything the bench measures, in the order of the table. */
export const ROWS: readonly Row[] = [createEmptyPool, createFromPool, execWarm];
