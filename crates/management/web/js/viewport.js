// How large the window is.

import { useEffect, useState } from "./html.js";

const phone = window.matchMedia("(max-width: 34rem)");

/** True on a phone, as a hook. */
export function usePhone() {
  const [isPhone, setIsPhone] = useState(phone.matches);
  useEffect(() => {
    const changed = () => setIsPhone(phone.matches);
    phone.addEventListener("change", changed);
    return () => phone.removeEventListener("change", changed);
  }, []);
  return isPhone;
}
