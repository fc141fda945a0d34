import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { PLATFORM, REPOSITORY, type ReleaseFacts } from './facts.ts';
import { run } from './run.ts';

const SOURCE = join(REPOSITORY, 'deploy/debian');
const HOST_PACKAGES = join(REPOSITORY, 'scripts/host-packages.txt');
/** What the programs in the package link to, and what its scripts run. */
const OTHER_PACKAGES = ['libc6', 'libstdc++6', 'systemd'];
const MAINTAINER = 'svc <svc@localhost>';
const MAINTAINER_SCRIPTS = ['postinst', 'prerm', 'postrm'] as const;

/**
 * Builds a Debian package from a complete tree in `directory`, which it uses as scratch space too. Returns the name of the
 * file. Whoever builds it, the files belong to root.
 */
export async function buildDeb(
  tree: string,
  directory: string,
  facts: ReleaseFacts,
): Promise<string> {
  const name = `svc_${facts.version}_${PLATFORM.debian}.deb`;
  const root = join(directory, 'deb');
  try {
    await mkdir(join(root, 'usr/lib'), { recursive: true });
    await cp(tree, join(root, 'usr/lib/svc'), { recursive: true, verbatimSymlinks: true });
    await addSystemFiles(root);
    await addDocuments(root, facts);
    await run('chmod', ['-R', 'u=rwX,go=rX', root]);
    // They hold secrets.
    for (const file of await settings()) await chmod(join(root, 'etc/svc', file), 0o600);
    await addControl(root, facts);
    const env = { SOURCE_DATE_EPOCH: String(facts.epoch) };
    const options = ['--root-owner-group', '-Zzstd'];
    await run('dpkg-deb', [...options, '--build', root, join(directory, name)], { env });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
  return name;
}

const settings = async () => (await readdir(join(SOURCE, 'settings'))).sort();

async function addSystemFiles(root: string): Promise<void> {
  await cp(join(SOURCE, 'units'), join(root, 'usr/lib/systemd/system'), { recursive: true });
  await cp(join(SOURCE, 'settings'), join(root, 'etc/svc'), { recursive: true });
  await cp(join(SOURCE, 'sysusers.conf'), join(root, 'usr/lib/sysusers.d/svc.conf'));
  await cp(join(SOURCE, 'svc.sh'), join(root, 'usr/bin/svc'));
  await chmod(join(root, 'usr/bin/svc'), 0o755);
}

async function addDocuments(root: string, { version, epoch }: ReleaseFacts): Promise<void> {
  const folder = join(root, 'usr/share/doc/svc');
  await mkdir(folder, { recursive: true });
  await cp(join(SOURCE, 'copyright'), join(folder, 'copyright'));
  const date = new Date(epoch * 1000).toUTCString().replace('GMT', '+0000');
  const entry = `svc (${version}) stable; urgency=medium\n\n  * Release ${version}.\n\n -- ${MAINTAINER}  ${date}\n`;
  await writeFile(join(folder, 'changelog.gz'), gzipSync(entry, { level: 9 }));
}

async function addControl(root: string, { version }: ReleaseFacts): Promise<void> {
  const folder = join(root, 'DEBIAN');
  await mkdir(folder);
  const [size = ''] = (await run('du', ['-sk', root])).split('\t');
  const fields = {
    Package: 'svc',
    Version: version,
    Architecture: PLATFORM.debian,
    Maintainer: MAINTAINER,
    'Installed-Size': size,
    Depends: [...(await hostPackages()), ...OTHER_PACKAGES].join(', '),
    Section: 'admin',
    Priority: 'optional',
    Description: [
      'computers for AI agents: micro-VM sandboxes behind a small REST API',
      ' A control plane, a runtime host for the WebSockets of agent sessions, and a',
      ' worker that runs the micro-VMs, together on one machine (svc.service) or on',
      ' their own in a fleet. Brings Node.js along.',
    ].join('\n'),
  };
  const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}`);
  await writeFile(join(folder, 'control'), `${lines.join('\n')}\n`);
  const conffiles = (await settings()).map((file) => `/etc/svc/${file}\n`);
  await writeFile(join(folder, 'conffiles'), conffiles.join(''));
  for (const script of MAINTAINER_SCRIPTS) {
    await cp(join(SOURCE, script), join(folder, script));
    await chmod(join(folder, script), 0o755);
  }
}

/** The Debian packages that svc needs on a machine with a worker. */
async function hostPackages(): Promise<string[]> {
  const lines = (await readFile(HOST_PACKAGES, 'utf8')).split('\n');
  return lines.filter((line) => /^[a-z]/.test(line)).map((line) => line.split(/\s+/)[0] ?? '');
}
