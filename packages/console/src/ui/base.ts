const script = import.meta.url

/** Where the console is mounted. Its script is in `<base>/assets/`, wherever a page's address leads. */
export const base: URL = new URL('..', script)
