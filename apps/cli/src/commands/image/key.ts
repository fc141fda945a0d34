import { Command } from 'commander';

/** `svc image key` */
export function keyCommand(): Command {
  return new Command('key')
    .description(
      'print the public key of the key that signs images, which is made unless there is one',
    )
    .option('--json', 'print the key and its file as JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { loadConfig } = await import('@svc/config');
      const { ensureSigningKey } = await import('../../service/images/signing-key.ts');
      const { file, publicKey, isNew } = await ensureSigningKey(loadConfig());
      if (json) {
        console.log(JSON.stringify({ file, public_key: publicKey }, null, 2));
        return;
      }
      if (isNew) console.error(`made the private key ${file}; keep a copy in a safe place`);
      console.log(publicKey);
    });
}
