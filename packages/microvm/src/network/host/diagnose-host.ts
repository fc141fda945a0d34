import { access, constants } from 'node:fs/promises';
import { run } from '../command.ts';

/** Something about this machine that keeps sandboxes from the network, or will. */
export interface NetworkFinding {
  /** `problem`: sandboxes cannot be made, or reach nothing. `warning`: they work, with a drawback. */
  readonly severity: 'problem' | 'warning';
  /** What is wrong and what to do about it, in a sentence or two. */
  readonly message: string;
}

const TUN = '/dev/net/tun';

/** Looks for what commonly stands in the way of the network layer. Changes nothing. */
export async function diagnoseHost(): Promise<NetworkFinding[]> {
  if (process.getuid?.() !== 0) {
    return [problem('The worker needs root to make network namespaces and packet filters.')];
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
  const present = await run('conntrack', ['--version']).then(
    () => true,
    () => false,
  );
  if (present) return [];
  const message =
    'The program conntrack is missing: connections of ended sandboxes stay in the kernel’s table ' +
    'until they time out. Install the package conntrack.';
  return [{ severity: 'warning', message }];
}

/** A packet has to pass every filter of the machine: ours cannot allow what another one drops. */
async function foreignFilters(): Promise<NetworkFinding[]> {
  let listing: string;
  try {
    listing = await run('nft', ['-j', 'list', 'chains']);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [problem(`The packet filter cannot be read, is nftables installed? ${reason}`)];
  }
  return dropsByDefault(listing).map(({ family, table, name, hook }) => {
    const traffic = hook === 'forward' ? 'to the internet' : 'to their DNS server';
    return problem(
      `The chain ${name} of the table ${family} ${table} drops by default what sandboxes send ` +
        `${traffic}. Allow the interfaces svc* there (Docker: in its DOCKER-USER chain).`,
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

/** Base chains that sandboxes' packets pass and that drop what no rule of theirs accepts. */
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
