import { createHmac, randomInt, timingSafeEqual } from 'node:crypto';
import { isIPv6 } from 'node:net';
import type { Config } from '@svc/config';
import { LIMITS, looksLikeCode, ServiceError } from '@svc/contract';
import type { OtpRequest, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import ipaddr from 'ipaddr.js';
import type { DerivedKeys } from '../crypto/cluster-secrets.ts';
import { rateLimitHeaders } from '../rate-limits/headers.ts';
import { codeMessage } from './code-message.ts';
import type { Mailer } from './mail.ts';

export interface OneTimeCodeOptions {
  readonly otp: Store['otp'];
  readonly mailer: Mailer;
  readonly logger: FastifyBaseLogger;
  /** Keys of the stored hashes, the same on every replica: the first makes them, each is accepted. */
  readonly hashKeys: DerivedKeys;
  readonly limits: Pick<
    Config['limits'],
    'otpPerEmailPerHour' | 'otpPerIpPerHour' | 'otpWrongPerIpPerHour'
  >;
}

/** One-time codes by mail: six digits, short-lived, single-use, with few attempts. */
export class OneTimeCodes {
  readonly #options: OneTimeCodeOptions;

  constructor(options: OneTimeCodeOptions) {
    this.#options = options;
  }

  /**
   * Sends a new code and invalidates the previous one. The behaviour does not depend on whether the account exists.
   * @throws ServiceError `ip_rate_limited`, `otp_rate_limited`, `email_send_failed`
   */
  async send(email: string, ip: string): Promise<void> {
    const { limits, otp } = this.#options;
    await this.#count('ip_rate_limited', {
      kind: 'ip',
      subject: networkOf(ip),
      maxPerHour: limits.otpPerIpPerHour,
    });
    await this.#count('otp_rate_limited', {
      kind: 'email',
      subject: email,
      maxPerHour: limits.otpPerEmailPerHour,
    });
    const code = randomInt(10 ** LIMITS.otpDigits)
      .toString()
      .padStart(LIMITS.otpDigits, '0');
    const codeHash = hashOf(email, code, this.#options.hashKeys[0]);
    await otp.put(email, codeHash, LIMITS.otpSeconds);
    try {
      await this.#options.mailer.send(codeMessage(email, code));
    } catch (cause) {
      this.#options.logger.error({ err: cause }, 'cannot send mail');
      // Not a later code of this address, which may have arrived.
      await otp.consume(email, codeHash);
      throw new ServiceError('email_send_failed', undefined, { cause });
    }
  }

  /**
   * Redeems a code. Every try counts as a wrong one of the caller's network before it uses a try of the code, so that nobody
   * can use up the codes of others, and is taken back when it was right.
   * @throws ServiceError `ip_rate_limited`; `otp_invalid` for every other kind of failure
   */
  async redeem(email: string, code: string, ip: string): Promise<void> {
    const { limits, otp } = this.#options;
    const wrong = { kind: 'wrong_code', subject: networkOf(ip) } as const;
    await this.#count('ip_rate_limited', { ...wrong, maxPerHour: limits.otpWrongPerIpPerHour });
    await this.#redeem(email, code);
    await otp.uncountRequest(wrong);
  }

  async #redeem(email: string, code: string): Promise<void> {
    const { otp, hashKeys } = this.#options;
    const expected = await otp.takeTry(email, LIMITS.otpWrongTries);
    const matches = hashKeys.some((key) => {
      const given = hashOf(email, code, key);
      return timingSafeEqual(expected ?? Buffer.alloc(given.length), given);
    });
    const valid = matches && expected !== undefined && looksLikeCode(code);
    if (!valid || !(await otp.consume(email, expected))) throw new ServiceError('otp_invalid');
  }

  async #count(code: 'ip_rate_limited' | 'otp_rate_limited', request: OtpRequest): Promise<void> {
    const waitSeconds = await this.#options.otp.countRequest(request);
    if (waitSeconds === 0) return;
    const quota = {
      name: `otp-${request.kind.replace('_', '-')}`,
      most: request.maxPerHour,
      windowSeconds: 3600,
    };
    // Only refused requests state the limit: otherwise it would reveal the requests of others for this address.
    const headers = rateLimitHeaders(quota, { remaining: 0, resetSeconds: waitSeconds });
    throw new ServiceError(code, undefined, { headers, retryAfterSeconds: waitSeconds });
  }
}

function hashOf(email: string, code: string, key: Buffer): Buffer {
  return createHmac('sha256', key).update(`${email}\n${code}`).digest();
}

/** The unit of counting: an IPv6 customer has a whole /64. */
export function networkOf(ip: string): string {
  if (!isIPv6(ip)) return ip;
  const address = ipaddr.IPv6.parse(ip.split('%')[0] ?? ip);
  if (address.isIPv4MappedAddress()) return address.toIPv4Address().toString();
  return `${address.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}
