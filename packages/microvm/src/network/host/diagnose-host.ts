import { access, constants } from 'node:fs/promises';
import { runProgram } from '@svc/service-kit/process';

/** A property of this machine that breaks or impairs the network of sandboxes. */
export interface NetworkFinding {
  /** `problem`: sandboxes cannot be created or have no network. `warning`: they work, with a drawback. */
  readonly severity: 'problem' | 'warning';
  /** What is wrong and how to fix it, in one or two sentences. */
  readonly message: string;
}

const TUN = '/dev/net/tun';

/** Checks for common obstacles to the network layer. Changes nothing. */
export async function diagnoseHost(): Promise<NetworkFinding[]> {
  if (process.getuid?.() !== 0) {
    return [problem('The worker needs root to create network namespaces and packet filters.')];
  }
  const findings = await Promise.all([tunDevice(), conntrackProgram(), foreignFilters()]);
  return findings.flat();
}

async function tunDevice(): Promise<NetworkFinding[]> {
  const usable = await access(TUN, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  return usable ? [] : [problem(`${TUN} is missing: load the kernel module tun.`)];
}

async function conntrackProgram(): Promise<NetworkFinding[]> {
  const present = await runProgram('conntrack', ['--version']).then(
    () => true,
    () => false,
  );
  if (present) return [];
  const message =
    'The program conntrack is missing: connections of ended sandboxes stay in the kernel’s table ' +
    'until they time out. Install the package conntrack.';
  return [{ severity: 'warning', message }];
}

/** A packet must pass every filter of the machine: svc's own filter cannot allow a packet that another one drops. */
async function foreignFilters(): Promise<NetworkFinding[]> {
  let listing: string;
  try {
    listing = await runProgram('nft', ['-j', 'list', 'chains']);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [problem(`The packet filter cannot be read. Is nftables installed? ${reason}`)];
  }
  return dropsByDefault(listing).map(({ family, table, name, hook }) => {
    const traffic = hook === 'forward' ? 'to the internet' : 'to their DNS server';
    return problem(
      `The chain ${name} of the table ${family} ${table} drops packets of sandboxes ` +
        `${traffic} by default. Allow the interfaces svc* there (Docker: in its DOCKER-USER chain).`,
    );
  });
}

interface Chain {
  readonly family: string;
  readonly table: string;
  readonly name: string;
  readonly hook?: string;
  readonly policy?: string;
}

/** The base chains that packets of sandboxes pass and whose policy is to drop. */
export function dropsByDefault(listing: string): Chain[] {
  const { nftables } = JSON.parse(listing) as { nftables: { chain?: Chain }[] };
  return nftables
    .flatMap(({ chain }) => chain ?? [])
    .filter(({ family }) => family === 'ip' || family === 'inet')
    .filter(({ hook, policy }) => (hook === 'forward' || hook === 'input') && policy === 'drop');
}

function problem(message: string): NetworkFinding {
  return { severity: 'problem', message };
}
