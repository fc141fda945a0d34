import type { KeyObject } from 'node:crypto';
import { mkdir, open, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '@svc/config';
import { createImageSigningKey, publicKeyText, readImageSigningKey } from '@svc/microvm';
import { CliError } from '../../output/errors.ts';

/** Permissions of anyone but the owner. */
const OTHERS = 0o077;

type KeyConfig = Pick<Config, 'imageSigningKeyFile' | 'dataDir'>;

export function signingKeyFile({ imageSigningKeyFile, dataDir }: KeyConfig): string {
  return imageSigningKeyFile ?? join(dataDir, 'image-signing-key.pem');
}

/**
 * The private key with which the operator signs images.
 * @throws CliError `no_signing_key`, `signing_key_exposed`, `signing_key_invalid`
 */
export async function readSigningKey(config: KeyConfig): Promise<KeyObject> {
  const file = signingKeyFile(config);
  try {
    if (((await stat(file)).mode & OTHERS) !== 0) {
      throw new CliError('signing_key_exposed', `other users of this machine can access ${file}`, {
        next: `chmod 600 ${file}; if somebody may have read it, make another key and have workers trust only that`,
      });
    }
    return readImageSigningKey(await readFile(file, 'utf8'));
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') {
      throw new CliError('no_signing_key', `there is no key to sign images with in ${file}`, {
        next: 'make one with svc image key, or set SVC_IMAGE_SIGNING_KEY_FILE',
        cause,
      });
    }
    throw new CliError('signing_key_invalid', `${file} has no private Ed25519 key`, {
      next: 'make one with svc image key at another path',
      cause,
    });
  }
}

/** The public key of the operator's signing key, which is made unless there is one. @throws CliError like {@link readSigningKey} */
export async function ensureSigningKey(
  config: KeyConfig,
): Promise<{ readonly file: string; readonly publicKey: string; readonly isNew: boolean }> {
  const file = signingKeyFile(config);
  const isNew = await createKeyFile(file);
  return { file, publicKey: publicKeyText(await readSigningKey(config)), isNew };
}

/** Writes a new key, durably. False if the file exists: another key must never take its place by mistake. */
async function createKeyFile(file: string): Promise<boolean> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(file, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return undefined;
    throw error;
  });
  if (handle === undefined) return false;
  try {
    await handle.writeFile(createImageSigningKey().privateKey);
    await handle.sync();
    return true;
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}
