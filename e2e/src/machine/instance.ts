import { readdir, readFile, realpath } from 'node:fs/promises';
import { orIfAbsent } from './absent.ts';
import { databaseOf } from './database.ts';

const REGISTRY = '/run/svc/instances';
/** Each service has as many users, and a /20 of addresses. */
const USERS = 2048;
const FIRST_USER = 1_900_000_000;

/** The name spaces of the machine that one service uses, as long as it holds its place among the services. */
export interface InstanceNames {
  readonly dataDir: string;
  readonly index: number;
  /** Prefix of namespaces and interfaces, name of the packet filter's table and of the control groups. */
  readonly name: string;
  readonly runDir: string;
  /** Where the embedded database listens; undefined when there is none. */
  readonly databaseDir: string | undefined;
  readonly addresses: string;
  /** First user, and the one after the last. */
  readonly users: readonly [number, number];
}

/** What the service on this data directory uses of the machine. It has to hold its place now. */
export async function instanceOf(dataDir: string): Promise<InstanceNames> {
  const path = await realpath(dataDir);
  for (const entry of await orIfAbsent(readdir(REGISTRY), [])) {
    const index = Number(entry);
    if (!Number.isInteger(index) || (await ownerOf(index)) !== path) continue;
    const first = FIRST_USER + index * USERS;
    return {
      dataDir: path,
      index,
      name: `svc${index}`,
      runDir: `/run/svc/${index}`,
      databaseDir: (await databaseOf(path))?.socketDirectory,
      addresses: `198.${18 + (index >> 4)}.${(index & 15) * 16}.0/20`,
      users: [first, first + USERS],
    };
  }
  throw new Error(`no service holds a place for ${path}`);
}

/** The data directory that holds this place among the machine's services; undefined when none does. */
export async function ownerOf(index: number): Promise<string | undefined> {
  return orIfAbsent(readFile(`${REGISTRY}/${index}`, 'utf8'), undefined);
}
