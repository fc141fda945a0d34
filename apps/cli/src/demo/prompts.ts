/** What the demo asks, in this order. The last one is asked of a fresh sandbox. */
export const PROMPTS = {
  work: 'Write primes.py, which prints the first ten primes in one line, and run it.',
  remember: 'My favourite of them is 23. Keep that in mind.',
  recall: 'Run the program again, and tell me which of its primes is my favourite.',
} as const;

/** What of the conversation shows that the agent still has it. */
export const REMEMBERED = 'favourite of them is 23';
