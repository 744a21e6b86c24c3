// Runs tests one after the other, and counts them.

let passed = 0;
let failed = 0;

/** Runs a test, which gets an id that no other test has. A failure does not end the program. */
export const test = async (name, run) => {
  try {
    await run(`${name.replaceAll(/\W+/g, "-")}-${Date.now()}`);
    passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error.stack ?? error}`);
  }
};

/** Throws an error with `what`, unless something holds. */
export const expect = (holds, what) => {
  if (!holds) throw new Error(typeof what === "string" ? what : JSON.stringify(what));
};

/** Prints how many tests have passed, and ends the program. */
export const finish = () => {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
};
