import { ImageNotStoredError, ImageRefusedError, MicrovmError } from '@svc/microvm';
import { CliError } from '../../output/errors.ts';

type Remedy = (template: string) => string;

/** What an operator does about an image that is refused, by the reason. */
const REMEDIES: Readonly<Record<ImageRefusedError['reason'], Remedy>> = {
  damaged: (template) =>
    `svc image push ${template} replaces what is damaged in the object store; find out what damaged it`,
  untrusted: (template) =>
    `compare SVC_IMAGE_TRUSTED_KEYS with svc image ls --store; if you did not sign this image, find out who did, then svc image push ${template}`,
  another: (template) =>
    `build and push the image with the version of svc that runs here: svc image build ${template} --push`,
  withdrawn: (template) =>
    `svc image build ${template} --push in an empty SVC_IMAGE_DIR, or correct SVC_IMAGE_NOT_BEFORE`,
  invalid: (template) =>
    `svc image build ${template} --push in an empty SVC_IMAGE_DIR, with a key that only you have`,
};

/** An error with the next step for the operator, if an image cannot come from the object store; otherwise the error itself. */
export function explainImageFailure(cause: unknown, template: string): unknown {
  if (cause instanceof ImageRefusedError) {
    const message = `the image of ${template} in the object store is refused: ${cause.message}`;
    const next = REMEDIES[cause.reason](template);
    return new CliError('image_refused', message, { next, cause });
  }
  if (cause instanceof ImageNotStoredError) {
    const next = `push it with svc image push ${template}, or set SVC_IMAGE_SOURCE to build or store-or-build`;
    return new CliError('image_not_stored', cause.message, { next, cause });
  }
  if (cause instanceof MicrovmError && cause.code === 'host_disk_full') {
    const next = 'make room, or set SVC_IMAGE_DIR to a directory on a larger disk';
    return new CliError('disk_full', cause.message, { next, cause });
  }
  return cause;
}
