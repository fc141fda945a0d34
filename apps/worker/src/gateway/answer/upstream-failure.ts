import { EgressError } from '@svc/egress';
import { BodyError, type BodyProblem } from '../request/request-body.ts';
import { GatewayFailure } from './failure.ts';

const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'ETIMEDOUT']);
const CERTIFICATE = /CERT|SIGNATURE|SELF_SIGNED/;

const BODY_PROBLEMS: Readonly<Record<BodyProblem, [400 | 413 | 429, string]>> = {
  too_large: [413, 'The request is larger than what is passed on to a model.'],
  too_much_held: [429, 'Too many large requests are under way; try again.'],
  malformed: [400, 'The request repeats members of its JSON.'],
};

/** Converts the failure of a request for the agent. The message contains neither addresses nor the key. */
export function upstreamFailure(error: unknown): GatewayFailure {
  if (error instanceof GatewayFailure) return error;
  const cause = { cause: error };
  if (error instanceof BodyError) {
    const [status, message] = BODY_PROBLEMS[error.problem];
    return new GatewayFailure(status, message, cause);
  }
  if (error instanceof EgressError) {
    const status = error.code === 'egress_refused' ? 403 : 502;
    return new GatewayFailure(status, `The model endpoint's URL ${error.problem}.`, cause);
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (TIMEOUTS.has(code)) {
    return new GatewayFailure(504, 'The model endpoint does not answer.', cause);
  }
  if (CERTIFICATE.test(code)) {
    return new GatewayFailure(502, "The model endpoint's certificate is not trusted.", cause);
  }
  return new GatewayFailure(502, 'The model endpoint cannot be reached.', cause);
}
