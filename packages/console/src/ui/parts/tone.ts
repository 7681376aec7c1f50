/** How something is marked: by colour and by shape. */
export type Tone = 'plain' | 'good' | 'wait' | 'bad' | 'info'
