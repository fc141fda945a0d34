import { readdir, readFile, realpath } from 'node:fs/promises';
import { databaseServer, orIfAbsent } from '@svc/service-driver';

const REGISTRY = '/run/svc/instances';
/** Number of user ids of each service. */
const USERS = 2048;
const FIRST_USER = 1_900_000_000;

/** The names and ranges that one service uses on the machine while it holds its instance number. */
export interface InstanceNames {
  readonly dataDir: string;
  readonly index: number;
  /** Prefix of namespaces and interfaces; name of the packet filter's table and of the cgroups. */
  readonly name: string;
  readonly runDir: string;
  /** Socket directory of the embedded database; undefined when there is none. */
  readonly databaseDir: string | undefined;
  readonly addresses: string;
  /** First user id, and the one after the last. */
  readonly users: readonly [number, number];
}

/** Finds the instance of the service on a data directory. @throws Error when it holds no instance number now */
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
      databaseDir: (await databaseServer(path))?.socketDirectory,
      addresses: `198.${18 + (index >> 4)}.${(index & 15) * 16}.0/20`,
      users: [first, first + USERS],
    };
  }
  throw new Error(`no service holds an instance number for ${path}`);
}

/** The data directory that holds an instance number; undefined when none does. */
export async function ownerOf(index: number): Promise<string | undefined> {
  return orIfAbsent(readFile(`${REGISTRY}/${index}`, 'utf8'), undefined);
}
