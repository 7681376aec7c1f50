/** What is declared alike in all processes, and what the checks go by. */
export const quotaBooks = {
  lifetime: { name: 'calls', limit: 20, per: 'lifetime' },
  minute: { name: 'calls-a-minute', limit: 200, per: 'minute' },
  rolling: { name: 'calls-rolling', limit: 12, rolling: '500 ms' },
} as const
