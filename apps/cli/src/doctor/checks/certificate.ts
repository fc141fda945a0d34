import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { servicePlaces } from '../../service/places.ts';
import { type Check, fail, ok, warn } from '../finding.ts';

const SOON_MS = 14 * 86_400_000;

/** The certificate that the control plane serves. */
export const certificateCheck: Check = {
  name: 'certificate',
  run: async ({ config }) => {
    if (!config.tls) return ok('certificate', 'none: plain HTTP, for a proxy in front');
    const file = config.tlsCertFile ?? join(servicePlaces(config.dataDir).tls, 'server.pem');
    const pem = await readFile(file, 'utf8').catch(() => undefined);
    if (pem === undefined) {
      return config.tlsCertFile === undefined
        ? ok('certificate', 'the first start makes a local CA')
        : fail('certificate', `${file} cannot be read`, 'correct SVC_TLS_CERT_FILE');
    }
    const end = new X509Certificate(pem).validToDate;
    const shown = `${file}, until ${end.toISOString().slice(0, 10)}`;
    if (end.getTime() - Date.now() > SOON_MS) return ok('certificate', shown);
    return warn(
      'certificate',
      `${shown}: ends soon`,
      'renew it; a local one is renewed by a start',
    );
  },
};
