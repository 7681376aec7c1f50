/** The next step that a note names where only what functions and triggers run inside is in the way; a hunt looks for it. */
export const orAsOne = "say functions: 'atomic' if it is proven in another way"
