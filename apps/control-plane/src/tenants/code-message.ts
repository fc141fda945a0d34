import { LIMITS } from '@svc/contract';
import type { Message } from './mail.ts';

const MINUTES = LIMITS.otpSeconds / 60;
const FONT = 'font-family: system-ui, -apple-system, sans-serif';

/** The message with a one-time code. The subject starts with the code, so that notifications show it. */
export function codeMessage(to: string, code: string): Message {
  const valid = `It is valid for ${MINUTES} minutes and for one use.`;
  const unasked = 'If you did not ask for it, ignore this message: nobody can sign in without it.';
  return {
    to,
    subject: `${code} is your sign-in code`,
    text: `Your sign-in code is ${code}. ${valid}\n\n${unasked}\n`,
    html: `<!doctype html>
<html lang="en">
<body style="${FONT}; font-size: 16px; line-height: 1.5; margin: 24px">
<p>Your sign-in code is</p>
<p style="font-size: 32px; font-weight: 600; letter-spacing: 6px; margin: 16px 0">${code}</p>
<p>${valid}</p>
<p style="color: #666666">${unasked}</p>
</body>
</html>
`,
  };
}
