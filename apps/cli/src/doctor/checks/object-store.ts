import { reachS3 } from '../../service/reach-object-store.ts';
import { type Check, fail, ok } from '../findings.ts';

const NAME = 'object store';
const TIMEOUT_MS = 10_000;

/** Whether the configured S3 bucket can be reached. A store in the data directory needs no check. */
export const objectStoreCheck: Check = {
  name: NAME,
  run: async ({ config }) => {
    const bucket = `the bucket ${config.s3Bucket} at ${config.s3Endpoint}`;
    try {
      const reached = await reachS3(config, AbortSignal.timeout(TIMEOUT_MS));
      return ok(NAME, reached ? bucket : 'in the data directory');
    } catch (error) {
      return fail(NAME, `cannot reach ${bucket}: ${causeOf(error)}`, 'check the SVC_S3_ variables');
    }
  },
};

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error
    ? `${error.message} (${error.cause.name}: ${error.cause.message})`
    : error.message;
}
