import type { OpenFleet, ServerState } from '@svc/store';
import { type Finding, fail, ok, warn } from '../findings.ts';

/** Clocks that differ by more than this, in seconds, mislead whoever compares logs, and break tokens that are short-lived. */
export const MAX_CLOCK_DIFFERENCE = 3;
/** The part of the connections from which on others may soon be refused. */
const MANY_CONNECTIONS = 0.9;

/** What the database server said, and by how many seconds the clock of this machine was ahead of its clock then. */
export interface AskedDatabase {
  readonly state: ServerState;
  readonly ahead: number;
}

/** Asks the server of the ledger. */
export async function askDatabase({ server }: Pick<OpenFleet, 'server'>): Promise<AskedDatabase> {
  const asked = Date.now();
  const state = await server.read();
  const middle = (asked + Date.now()) / 2;
  return { state, ahead: (middle - state.now.getTime()) / 1000 };
}

/** The server of the ledger. */
export function databaseFindings({ state, ahead }: AskedDatabase): Finding[] {
  const { version, readOnly, connections, maxConnections, waitsForStandby } = state;
  const found: Finding[] = [];
  if (readOnly) {
    const mend = 'promote it, or let SVC_DATABASE_URL lead to the primary';
    found.push(fail('database', 'takes no writes: it is a standby, or read-only', mend));
  }
  if (waitsForStandby) {
    const mend = 'start the standby, or take it out of synchronous_standby_names';
    found.push(fail('database', 'no commit ends: no synchronous standby is connected', mend));
  }
  if (connections > MANY_CONNECTIONS * maxConnections) {
    const mend = 'raise max_connections, or put PgBouncer in front, see docs/operations.md';
    found.push(warn('database', `${connections} of ${maxConnections} connections are taken`, mend));
  }
  if (found.length === 0) {
    found.push(ok('database', `${version}, ${connections} of ${maxConnections} connections`));
  }
  if (Math.abs(ahead) > MAX_CLOCK_DIFFERENCE) {
    found.push(clockFinding('clock', 'this machine', ahead));
  }
  return found;
}

/** @param ahead seconds by which the clock is ahead of the other one */
export function clockFinding(name: string, whose: string, ahead: number): Finding {
  const seconds = Math.round(Math.abs(ahead));
  const direction = ahead > 0 ? 'ahead of' : 'behind';
  return warn(
    name,
    `the clock of ${whose} is ${seconds} s ${direction} that of the database`,
    'synchronise the clocks, for example with chrony',
  );
}
