package seeds;

/** Checks that only speak up when they fail. */
final class Silence extends Checks {
    private final Checks loud;

    Silence(Checks loud) {
        this.loud = loud;
    }

    @Override
    void that(boolean holds, String what) {
        if (!holds) {
            loud.that(false, what);
        }
    }
}
